// The bytes of a file as a stream, decompressed on the way: plain, gzip or zstd, judged by the first bytes,
// whatever the file is called. One owner, one thread. Memory is a fixed pair of buffers for any size of file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fullbore::ingest {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Up to `size` bytes into `out`; 0 at the end. An error is final and says at which byte of the file it
  // occurred.
  virtual Result<size_t> Read(char* out, size_t size) = 0;

  // How far the file itself (not the text in it) has been read, and its size; 0 if unknown.
  virtual int64_t file_position() const { return 0; }
  virtual int64_t file_size() const { return 0; }
};

Result<std::unique_ptr<ByteSource>> OpenBytes(const std::string& path);

// For tests and fuzzing; `bytes` outlives the source. Compressed bytes are recognised here too.
std::unique_ptr<ByteSource> BytesInMemory(std::string_view bytes);

}  // namespace fullbore::ingest
