// A tar shard, with the fields of its first sample and with requested fields.
#include <memory>

#include "fuzzed_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fullbore::fuzz::ReadEverything;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  ReadEverything(fullbore::loader::OpenTar, {{"shard.tar", bytes}}, {});
  ReadEverything(fullbore::loader::OpenTar, {{"shard.tar", bytes}}, {"jpg;png", "cls", "json"});
  return 0;
}
