// An index beside a shard. Its checksum and sizes are corrected, so that the code after those checks is
// reached.
#include <cstring>

#include "base/crc32c.h"
#include "fuzzed_source.h"

namespace {

constexpr size_t kShardBytes = 8192;
constexpr size_t kShardSizeAt = 8, kCrcAt = 24, kBodyAt = 28;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string index(reinterpret_cast<const char*>(data), size);
  if (size >= kBodyAt) {
    const uint64_t shard_bytes = kShardBytes;
    const uint32_t crc = fullbore::Crc32c({data + kBodyAt, size - kBodyAt});
    std::memcpy(index.data() + kShardSizeAt, &shard_bytes, sizeof shard_bytes);
    std::memcpy(index.data() + kCrcAt, &crc, sizeof crc);
  }
  const std::string shard(kShardBytes, '\0');
  fullbore::fuzz::ReadEverything(fullbore::loader::OpenTar, {{"a.tar", shard}, {"a.tar.idx", index}},
                                 {"jpg", "cls"});
  const auto* bytes = reinterpret_cast<const uint8_t*>(index.data());
  // Everything that is visited lies within the shard.
  (void)fullbore::loader::ReadTarIndex({bytes, index.size()}, kShardBytes, [](const auto& sample) {
    for (const auto& part : sample.parts) {
      if (part.header > kShardBytes || part.bytes > kShardBytes - part.header) std::abort();
    }
  });
  return 0;
}
