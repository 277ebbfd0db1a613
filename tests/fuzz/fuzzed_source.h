// A source over files in memory, opened and read to the end. What a sample says about itself must hold.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "loader/core/source/container.h"
#include "loader/core/source/tar_index.h"
#include "loader/core/source/testing/memory_store.h"

namespace fullbore::fuzz {

inline void ReadEverything(loader::OpenedSource (*open)(const loader::Opening&),
                           const std::map<std::string, std::string>& files,
                           const std::vector<std::string>& fields) {
  auto store = std::make_shared<loader::testing::MemoryStore>();
  store->files = files;
  loader::SourceOptions options;
  options.fields = fields;
  auto source = open({options, {files.begin()->first}, store});
  if (!source) return;
  constexpr uint64_t kMaxSamples = 1000;
  loader::RawSample sample;
  for (uint64_t id = 0; id < std::min((*source)->size(), kMaxSamples); ++id) {
    if ((*source)->NameOf(id).empty()) std::abort();
    if (!(*source)->Read(id, sample)) continue;
    if (sample.fields.size() != (*source)->fields().size()) std::abort();
    for (const loader::FieldValue& value : sample.fields) {
      if (value.bytes.empty()) continue;
      const uint8_t* begin = sample.storage.data();
      if (value.bytes.data() < begin ||
          value.bytes.data() + value.bytes.size() > begin + sample.storage.size())
        std::abort();
    }
  }
  (void)(*source)->TakeMessages();
}

}  // namespace fullbore::fuzz
