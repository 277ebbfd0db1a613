#include "base/temporary_directory.h"

#include <filesystem>
#include <system_error>

#include "base/guarded_file.h"

namespace fullbore {

namespace fs = std::filesystem;

Result<TemporaryDirectory> TemporaryDirectory::Make() {
  std::error_code unusable;
  const fs::path prefix = fs::temp_directory_path(unusable) / "fullbore";
  if (unusable) return ErrnoError("cannot use the directory for temporary files (TMPDIR)", unusable.value());
  auto made = MakeUniqueDirectory(prefix);
  if (!made) return made.error();
  return TemporaryDirectory(std::move(*made));
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace fullbore
