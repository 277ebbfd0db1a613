#include "cli/hook_directory.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace fullbore::cli {

namespace fs = std::filesystem;

std::string HookDirectory() {
  std::error_code error;
  std::vector<fs::path> candidates;
  if (const char* named = std::getenv("FULLBORE_HOOK_DIR")) candidates.emplace_back(named);
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  candidates.push_back(self.parent_path() / "../share/fullbore/python/fullbore/hook/site");
  candidates.push_back(self.parent_path() / "hook");
  for (const fs::path& candidate : candidates) {
    if (fs::exists(candidate / "sitecustomize.py", error)) return fs::weakly_canonical(candidate, error);
  }
  return "";
}

std::string PackageDirectory() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& candidate : {self / "../share/fullbore/python", self / "python"}) {
    if (fs::exists(candidate / "fullbore", error)) return fs::weakly_canonical(candidate, error);
  }
  return "";
}

}  // namespace fullbore::cli
