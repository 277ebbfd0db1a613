#include "base/temporary_directory.h"

#include <filesystem>
#include <system_error>

#include "base/guarded_file.h"

namespace fullbore {

namespace fs = std::filesystem;

Result<TemporaryDirectory> TemporaryDirectory::Make() {
  std::error_code unusable;
  const fs::path place = fs::temp_directory_path(unusable);
  if (unusable) return ErrnoError("cannot use the directory for temporary files (TMPDIR)", unusable.value());
  return MakeIn(place);
}

Result<TemporaryDirectory> TemporaryDirectory::MakeIn(const std::string& place) {
  auto made = MakeUniqueDirectory(fs::path(place) / "fullbore");
  if (!made) return made.error();
  return TemporaryDirectory(std::move(*made));
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace fullbore
