#include "measure/isolate/scratch.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "base/guarded_file.h"

namespace fullbore::isolate {

namespace fs = std::filesystem;

namespace {

constexpr char kName[] = "fullbore-trial";
constexpr int64_t kNotYetLockedNs = 60 * kNsPerSecond;  // between making a directory and locking it: no time
constexpr auto kSkip = fs::directory_options::skip_permission_denied;

// Calls `look` with everything below `path` that can be reached.
template <typename Look>
void Walk(const std::string& path, Look look) {
  std::error_code failed;
  for (fs::recursive_directory_iterator at(path, kSkip, failed), end; !failed && at != end;
       at.increment(failed))
    look(at->path());
}

bool LetIn(const fs::path& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  return (status.st_mode & S_IRWXU) != S_IRWXU && chmod(path.c_str(), S_IRWXU) == 0;
}

// Another process that cleans up may have taken a directory without a lock yet for a leftover: then it holds the lock while
// it removes the directory, and the lock's file has no name afterwards.
Result<UniqueFd> LockIn(const std::string& directory) {
  auto lock = CreateFile(directory + "/lock", kPrivateFile);
  if (!lock) return lock;
  struct stat status {};
  while (flock(lock->get(), LOCK_EX) != 0) {
    if (errno != EINTR) return ErrnoError("cannot lock '" + directory + "/lock'", errno);
  }
  if (fstat(lock->get(), &status) != 0 || status.st_nlink == 0)
    return Error{ErrorCode::kUnavailable, "'" + directory + "' was removed by another process", "try again"};
  return lock;
}

bool IsLeftover(const fs::path& directory) {
  struct stat status {};
  if (lstat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
    return false;
  const auto lock = OpenRegularFile(directory / "lock");
  if (!lock) return WallNs() - status.st_mtim.tv_sec * kNsPerSecond > kNotYetLockedNs;
  return flock(lock->get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

void RemoveTree(const std::string& path) {
  std::error_code failed;
  for (bool opened = true; opened;) {
    opened = false;
    fs::remove_all(path, failed);
    if (!failed) return;
    opened = LetIn(path);
    Walk(path, [&](const fs::path& each) { opened = LetIn(each) || opened; });
  }
}

int RemoveLeftovers(const std::string& place) {
  std::vector<fs::path> left;
  std::error_code failed;
  for (fs::directory_iterator at(place, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().filename().string().starts_with(std::string(kName) + ".") && IsLeftover(at->path()))
      left.push_back(at->path());
  }
  for (const fs::path& each : left) RemoveTree(each);
  return static_cast<int>(left.size());
}

Result<Scratch> Scratch::Make(const std::string& place) {
  (void)RemoveLeftovers(place);
  auto path = MakeUniqueDirectory(fs::path(place) / kName);
  if (!path) return path.error();
  auto lock = LockIn(*path);
  if (!lock) {
    RemoveTree(*path);
    return lock.error();
  }
  struct statvfs free {};
  const bool known = statvfs(path->c_str(), &free) == 0;
  const int64_t most =
      known ? static_cast<int64_t>(free.f_bavail) * static_cast<int64_t>(free.f_frsize) / 2 : INT64_MAX;
  return Scratch(std::move(*path), std::move(*lock), most);
}

Scratch::~Scratch() {
  if (!path_.empty()) RemoveTree(path_);
}

int64_t Scratch::UsedBytes() const {
  constexpr int64_t kBlockBytes = 512;  // what st_blocks counts, whatever the file system
  int64_t bytes = 0;
  Walk(path_, [&](const fs::path& each) {
    struct stat status {};
    if (lstat(each.c_str(), &status) == 0) bytes += status.st_blocks * kBlockBytes;
  });
  return bytes;
}

}  // namespace fullbore::isolate
