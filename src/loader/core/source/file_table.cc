#include "loader/core/source/file_table.h"

#include <algorithm>

#include "loader/core/source/paths.h"

namespace fullbore::loader {

const FileTable::Directory& FileTable::DirectoryOf(uint64_t id) const {
  const auto behind =
      std::upper_bound(directories_.begin(), directories_.end(), id,
                       [](uint64_t sample, const Directory& directory) { return sample < directory.first; });
  return *std::prev(behind);
}

void FileTable::PathOf(uint64_t id, std::string& out) const {
  const std::string& directory = DirectoryOf(id).path;
  const std::string_view name = names_[id];
  out.clear();
  if (!directory.empty() && !name.starts_with('/') && !IsRemote(name)) {
    out.append(directory);
    if (!directory.ends_with('/')) out += '/';
  }
  out.append(name);
}

}  // namespace fullbore::loader
