#include "loader/core/source/local_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "loader/core/source/directory_walk.h"
#include "loader/core/source/paths.h"

namespace fullbore::loader {

namespace {

// At most a quarter of what the process may have open: the training needs descriptors, too.
size_t MostOpen() {
  constexpr size_t kFewest = 8, kMost = 256;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kFewest;
  return std::clamp<size_t>(limit.rlim_cur / 4, kFewest, kMost);
}

int64_t ModifiedNs(const struct stat& status) {
  return status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec;
}

std::string VersionOf(const struct stat& status) {
  return fmt::format("{:x}-{:x}-{:x}-{:x}.{:09}", status.st_dev, status.st_ino, status.st_size,
                     status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

Error OpenError(const std::string& path, int error_number) {
  Error error = ErrnoError(fmt::format("cannot open '{}'", path), error_number);
  if (error_number == EMFILE || error_number == ENFILE) {
    error.code = ErrorCode::kUnavailable;
    error.hint = "raise the limit on open files: ulimit -n";
  }
  return error;
}

Error ChangedError(const std::string& path) {
  return {ErrorCode::kCorrupt, fmt::format("'{}' has changed since it was indexed", path),
          "its index is out of date: open the source again"};
}

Error CutError(const std::string& path, uint64_t wanted_end, uint64_t bytes) {
  return {ErrorCode::kCorrupt,
          fmt::format("'{}' ends at byte {}, but the read extends to byte {}", path, bytes, wanted_end),
          "the file was truncated, or its copy is incomplete"};
}

struct Opened {
  UniqueFd fd;
  struct stat status;
};

// O_NONBLOCK: opening a FIFO, which is refused here, would wait for a writer. Regular files ignore it.
Result<Opened> OpenRegular(const std::string& path) {
  Opened opened{UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)), {}};
  if (!opened.fd.valid()) return OpenError(path, errno);
  if (fstat(opened.fd.get(), &opened.status) != 0) return OpenError(path, errno);
  if (!S_ISREG(opened.status.st_mode)) {
    return Error{ErrorCode::kCorrupt, fmt::format("'{}' is not a regular file", path), ""};
  }
  return opened;
}

// Returns how much was read; less than `out` only at the end of the file.
Result<size_t> ReadFully(int fd, const std::string& path, uint64_t offset, std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(fmt::format("cannot read '{}' at byte {}", path, offset + done), errno);
    done += static_cast<size_t>(n);
  }
  return done;
}

}  // namespace

LocalStore::LocalStore() : most_open_(MostOpen()) {}

Result<std::vector<StoredFile>> LocalStore::List(const std::string& prefix) {
  const std::string root = LocalPath(prefix);
  std::vector<StoredFile> files;
  auto walked = Walk(root, [&](std::string_view directory, std::string_view name) {
    if (name.empty()) return;
    StoredFile file{JoinPath(directory.empty() ? root : JoinPath(root, directory), name), 0, ""};
    struct stat status;
    if (stat(file.path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;  // it has vanished
    file.bytes = static_cast<uint64_t>(status.st_size);
    file.version = VersionOf(status);
    files.push_back(std::move(file));
  });
  if (!walked) return walked.error();
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

Result<StoredFile> LocalStore::Stat(const std::string& path_or_url) {
  std::string path = LocalPath(path_or_url);
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return ErrnoError(fmt::format("cannot open '{}'", path), errno);
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is not a regular file", path), ""};
  }
  return StoredFile{std::move(path), static_cast<uint64_t>(status.st_size), VersionOf(status)};
}

Result<std::shared_ptr<const LocalStore::OpenFile>> LocalStore::OpenedFile(const StoredFile& file) {
  const std::lock_guard lock(mutex_);
  if (const auto known = open_.find(file.path); known != open_.end()) {
    uses_.splice(uses_.begin(), uses_, known->second.use);
    const auto& opened = known->second.file;
    if (file.version.empty() || file.version == opened->stored.version) return opened;
    uses_.pop_front();  // a different file of that name: perhaps the requested one is there now
    open_.erase(known);
  }
  auto opened = OpenRegular(LocalPath(file.path));
  if (!opened) return opened.error();
  auto entry = std::make_shared<const OpenFile>(
      OpenFile{std::move(opened->fd),
               {file.path, static_cast<uint64_t>(opened->status.st_size), VersionOf(opened->status)},
               ModifiedNs(opened->status)});
  if (!file.version.empty() && entry->stored.version != file.version) return ChangedError(file.path);
  if (open_.size() >= most_open_) {
    const std::string oldest = *uses_.back();
    uses_.pop_back();
    open_.erase(oldest);
  }
  const auto placed = open_.emplace(file.path, Slot{entry, {}}).first;
  uses_.push_front(&placed->first);
  placed->second.use = uses_.begin();
  return entry;
}

Result<void> LocalStore::Read(const StoredFile& file, uint64_t offset, std::span<uint8_t> out) {
  auto opened = OpenedFile(file);
  if (!opened) return opened.error();
  const OpenFile& source = **opened;
  auto done = ReadFully(source.fd.get(), file.path, offset, out);
  if (!done) return done.error();
  // After the read: whatever changed the bytes that were read has changed the time by then.
  struct stat now;
  if (fstat(source.fd.get(), &now) != 0) return OpenError(file.path, errno);
  const auto bytes = static_cast<uint64_t>(now.st_size);
  const bool changed = bytes != source.stored.bytes || ModifiedNs(now) != source.modified_ns;
  if (changed && !file.version.empty()) return ChangedError(file.path);
  if (*done < out.size()) return CutError(file.path, offset + out.size(), bytes);
  return {};
}

Result<size_t> LocalStore::ReadWhole(const std::string& path_or_url, std::vector<uint8_t>& out) {
  const bool url = path_or_url.starts_with("file://");
  const std::string stripped = url ? LocalPath(path_or_url) : std::string();
  const std::string& path = url ? stripped : path_or_url;
  auto opened = OpenRegular(path);
  if (!opened) return opened.error();
  const auto bytes = static_cast<size_t>(opened->status.st_size);
  if (out.size() < bytes) out.resize(bytes);
  auto done = ReadFully(opened->fd.get(), path, 0, std::span(out).first(bytes));
  if (!done) return done.error();
  if (*done < bytes) return CutError(path, bytes, *done);
  return bytes;
}

Result<void> LocalStore::Walk(const std::string& prefix, const WalkVisitor& visit) {
  return WalkDirectory(LocalPath(prefix), visit);
}

size_t LocalStore::open_files() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

}  // namespace fullbore::loader
