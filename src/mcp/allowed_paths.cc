#include "mcp/allowed_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace fullbore::mcp {

namespace fs = std::filesystem;

namespace {

// Of a directory that is named as a whole: a folder of traces or of runs has some hundred.
constexpr size_t kMostEntries = 100'000;

Error MayNotBeNamed(const std::string& path, const std::string& why) {
  return {ErrorCode::kPermission, fmt::format("'{}' {}", path, why),
          "work in the working directory, or start the server with --allow-path DIR"};
}

// The longest part of it that exists, free of links; a dangling link on the way leads nobody knows where.
std::optional<std::string> Resolved(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (error) return std::nullopt;
  const fs::path found = fs::weakly_canonical(absolute, error);
  if (error) return std::nullopt;
  fs::path so_far;
  for (const fs::path& part : found) {
    so_far /= part;
    if (part == ".." || fs::is_symlink(so_far, error)) return std::nullopt;
  }
  return found.string();
}

}  // namespace

Result<AllowedPaths> AllowedPaths::Make(const std::vector<std::string>& more) {
  AllowedPaths paths;
  std::vector<std::string> all = {"."};
  all.insert(all.end(), more.begin(), more.end());
  for (const std::string& path : all) {
    std::error_code error;
    const fs::path found = fs::canonical(path, error);
    if (error || !fs::is_directory(found, error)) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("--allow-path '{}' is not a directory", path),
                   "name an existing directory"};
    }
    paths.roots_.push_back(found.string());
  }
  return paths;
}

bool AllowedPaths::Holds(const std::string& resolved) const {
  return std::ranges::any_of(roots_, [&](const std::string& root) {
    return resolved == root || root == "/" || resolved.starts_with(root + "/");
  });
}

Result<std::string> AllowedPaths::Resolve(const std::string& path) const {
  const auto resolved = Resolved(path);
  if (!resolved || !Holds(*resolved)) return MayNotBeNamed(path, "lies outside of the working directory");
  std::error_code error;
  if (!fs::is_directory(*resolved, error)) return *resolved;
  size_t entries = 0;
  for (fs::recursive_directory_iterator at(*resolved, fs::directory_options::skip_permission_denied, error),
       end;
       !error && at != end; at.increment(error)) {
    if (++entries > kMostEntries)
      return MayNotBeNamed(path, fmt::format("holds more than {} files", kMostEntries));
    if (!at->is_symlink(error)) continue;
    const auto target = Resolved(at->path().string());
    if (!target || !Holds(*target))
      return MayNotBeNamed(path, fmt::format("holds a link that leads out: '{}'", at->path().string()));
  }
  return *resolved;
}

}  // namespace fullbore::mcp
