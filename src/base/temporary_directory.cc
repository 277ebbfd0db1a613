#include "base/temporary_directory.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace fullbore {

namespace fs = std::filesystem;

Result<TemporaryDirectory> TemporaryDirectory::Make() {
  std::error_code unusable;
  std::string name = (fs::temp_directory_path(unusable) / "fullbore-XXXXXX").string();
  if (unusable) return ErrnoError("cannot use the directory for temporary files (TMPDIR)", unusable.value());
  if (mkdtemp(name.data()) == nullptr) return ErrnoError(fmt::format("cannot make '{}'", name), errno);
  return TemporaryDirectory(std::move(name));
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace fullbore
