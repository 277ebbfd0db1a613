#include "loader/core/store.h"

namespace fullbore::loader {

Result<size_t> Store::ReadWhole(const std::string& path, std::vector<uint8_t>& out) {
  auto file = Stat(path);
  if (!file) return file.error();
  if (out.size() < file->bytes) out.resize(file->bytes);
  if (auto read = Read(*file, 0, std::span(out).first(file->bytes)); !read) return read.error();
  return static_cast<size_t>(file->bytes);
}

Result<void> Store::Walk(const std::string& prefix, const WalkVisitor& visit) {
  auto files = List(prefix);
  if (!files) return files.error();
  for (const StoredFile& file : *files) {
    std::string_view relative = file.path;
    relative.remove_prefix(std::min(relative.size(), prefix.size()));
    while (relative.starts_with('/')) relative.remove_prefix(1);
    const size_t slash = relative.rfind('/');
    if (slash == std::string_view::npos) {
      if (!relative.empty()) visit({}, relative);
    } else {
      visit(relative.substr(0, slash), relative.substr(slash + 1));
    }
  }
  return {};
}

}  // namespace fullbore::loader
