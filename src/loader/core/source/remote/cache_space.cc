#include "loader/core/source/remote/cache_space.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/guarded_file.h"

namespace fullbore::loader::remote {
namespace {

// An eviction counts all files; freeing a tenth at once keeps it rare.
constexpr double kKeptShare = 0.9;

struct CachedFile {
  std::string path;
  uint64_t bytes = 0;
  int64_t used_ns = 0;  // wall clock
};

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

template <typename Visit>
void ForEachEntry(const std::string& path, Visit visit) {
  const Directory directory(opendir(path.c_str()), &closedir);
  if (!directory) return;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") visit(dirfd(directory.get()), name);
  }
}

std::optional<uint64_t> ReadUsage(int fd) {
  uint64_t bytes = 0;
  if (pread(fd, &bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) return std::nullopt;
  return bytes;
}

Result<void> SetLength(int fd, const std::string& path, uint64_t bytes) {
  // Reserving the blocks now reveals a full disk before anything is fetched. Not posix_fallocate: if the
  // file system lacks it, that writes zeros.
  if (fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) return {};
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) {
    return ErrnoError("cannot reserve " + std::to_string(bytes) + " bytes for '" + path + "'", errno);
  }
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0) return {};
  return ErrnoError("cannot extend '" + path + "'", errno);
}

}  // namespace

Result<UniqueFd> CacheSpace::Create(const std::string& path, uint64_t bytes) {
  if (bytes > limit_bytes_) {
    return Error{ErrorCode::kNoSpace,
                 "its limit of " + std::to_string(limit_bytes_) + " bytes is less than one piece, " +
                     std::to_string(bytes) + " bytes",
                 "raise cache_bytes, or set it to 0"};
  }
  const std::string usage_path = directory_ + "/usage";
  const auto usage = OpenOrCreateFile(usage_path, kOrdinaryFile);
  if (!usage) return usage.error();
  auto used = ReadUsage(usage->get());
  // At least once per process, because it removes what killed processes left.
  if (!counted_ || !used || *used > limit_bytes_ - bytes) used = CountAndEvict(bytes);
  counted_ = true;
  const uint64_t then = *used + bytes;
  if (pwrite(usage->get(), &then, sizeof then, 0) != static_cast<ssize_t>(sizeof then)) {
    return ErrnoError("cannot write '" + usage_path + "'", errno);
  }
  auto fd = CreateFileAnew(path, kOrdinaryFile);
  if (!fd) return fd;
  if (auto length = SetLength(fd->get(), path, bytes); !length) {
    unlink(path.c_str());
    return length.error();
  }
  return fd;
}

uint64_t CacheSpace::CountAndEvict(uint64_t bytes) {
  std::vector<CachedFile> files;
  uint64_t total = 0;
  ForEachEntry(directory_, [&](int, const std::string& folder) {
    if (folder.size() != 2) return;
    ForEachEntry(directory_ + "/" + folder, [&](int fd, const std::string& name) {
      struct stat status {};
      if (fstatat(fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) return;
      const auto file_bytes = static_cast<uint64_t>(status.st_size);
      if (name.ends_with(kPartSuffix)) {
        const std::string chunk = folder + name.substr(0, name.size() - std::string_view(kPartSuffix).size());
        auto lock = CacheLock::Try(lock_path_, place_of_(chunk));
        if (lock && *lock && unlinkat(fd, name.c_str(), 0) == 0) return;  // nobody writes it any more
        total += file_bytes;
        return;
      }
      total += file_bytes;
      files.push_back({directory_ + "/" + folder + "/" + name, file_bytes,
                       status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec});
    });
  });
  if (total <= limit_bytes_ - bytes) return total;
  const auto kept = static_cast<uint64_t>(static_cast<double>(limit_bytes_) * kKeptShare);
  const uint64_t wanted = std::min(kept, limit_bytes_ - bytes);
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.used_ns < b.used_ns; });
  for (const CachedFile& file : files) {
    if (total <= wanted) break;
    if (unlink(file.path.c_str()) == 0 || errno == ENOENT) total -= file.bytes;
  }
  return total;
}

}  // namespace fullbore::loader::remote
