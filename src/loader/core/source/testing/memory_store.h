// Files in memory. Tests count what is read and make reads fail.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <string>

#include "loader/core/store.h"

namespace fullbore::loader::testing {

class MemoryStore : public Store {
 public:
  std::map<std::string, std::string> files;  // changed only while nobody reads
  std::optional<Error> failure;              // of every read
  std::atomic<uint64_t> reads = 0;

  Result<std::vector<StoredFile>> List(const std::string& prefix) override {
    std::vector<StoredFile> found;
    for (const auto& [path, bytes] : files) {
      if (path.starts_with(prefix)) found.push_back({path, bytes.size(), ""});
    }
    return found;
  }

  Result<StoredFile> Stat(const std::string& path) override {
    const auto file = files.find(path);
    if (file == files.end()) return Error{ErrorCode::kNotFound, "there is no '" + path + "'", ""};
    return StoredFile{path, file->second.size(), ""};
  }

  Result<void> Read(const StoredFile& file, uint64_t offset, std::span<uint8_t> out) override {
    ++reads;
    if (failure) return *failure;
    const std::string& bytes = files.at(file.path);
    if (offset > bytes.size() || out.size() > bytes.size() - offset)
      return Error{ErrorCode::kCorrupt, "'" + file.path + "' ends before", ""};
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }
};

}  // namespace fullbore::loader::testing
