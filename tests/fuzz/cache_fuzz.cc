// A file of the disk cache: whatever is in it, reading gives its data or an error.
#include <cstdint>
#include <vector>

#include "fuzzed_file.h"
#include "loader/core/source/remote/cache_chunk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace remote = fullbore::loader::remote;
  static const fullbore::fuzz::FuzzedFile chunk(".chunk");
  const remote::ChunkKey key(32, 'k');
  // The remote file says how much data the chunk should hold; here it is a size that fits the file's length,
  // or else one that does not.
  uint64_t data_bytes = size;
  while (data_bytes > 0 && remote::ChunkFileBytes(data_bytes) > size) --data_bytes;
  (void)remote::ParseChunkTail({data + data_bytes, size - data_bytes}, size, data_bytes, key);
  auto file = remote::ChunkFile::Open(chunk.Write(data, size), key, data_bytes);
  if (!file) return 0;
  std::vector<uint8_t> out(data_bytes);
  (void)(*file)->Read(0, out);
  (void)(*file)->Read(data_bytes / 2, std::span(out).first(data_bytes - data_bytes / 2));
  return 0;
}
