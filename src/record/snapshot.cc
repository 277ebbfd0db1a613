#include "record/snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/guarded_file.h"
#include "base/text.h"
#include "record/limits.h"

namespace fullbore::record {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSqliteMagic{"SQLite format 3\0", 16};
constexpr char kLogSuffix[] = "-wal";
constexpr size_t kLogHeaderBytes = 32;
constexpr size_t kChunkBytes = 1 << 20;
constexpr int kAttempts = 10;  // the log restarts every few megabytes: minutes, in a recording

struct OpenFile {
  UniqueFd fd;
  struct stat info {};
};

// O_NONBLOCK, because a FIFO would make us wait for a writer.
Result<OpenFile> OpenRegular(const std::string& path, int more_flags) {
  OpenFile file;
  file.fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | more_flags));
  if (!file.fd.valid() || ::fstat(file.fd.get(), &file.info) != 0)
    return ErrnoError("cannot open '" + path + "'", errno);
  if (!S_ISREG(file.info.st_mode))
    return Error{ErrorCode::kCorrupt, "'" + path + "' is not a regular file", ""};
  return file;
}

// Up to that many bytes from the beginning, fewer if the file is shorter.
std::string Head(int fd, size_t bytes) {
  std::string head(bytes, '\0');
  size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = ::pread(fd, head.data() + filled, bytes - filled, static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
  }
  head.resize(filled);
  return head;
}

// A write-ahead log that is in use; its header gets a new salt whenever it restarts.
struct Log {
  OpenFile file;
  std::string header;

  bool SameAs(const Log& other) const {
    return file.info.st_dev == other.file.info.st_dev && file.info.st_ino == other.file.info.st_ino &&
           header == other.header;
  }
};

// Nothing if there is no log, or an empty one as the last checkpoint leaves it.
Result<std::optional<Log>> OpenLog(const std::string& database) {
  auto file = OpenRegular(database + kLogSuffix, O_NOFOLLOW);
  if (!file) {
    if (file.error().code == ErrorCode::kNotFound) return std::optional<Log>();
    return file.error();
  }
  std::string header = Head(file->fd.get(), kLogHeaderBytes);
  if (header.empty()) return std::optional<Log>();
  return std::optional<Log>(Log{std::move(*file), std::move(header)});
}

// Where the next bytes after `at` are that the file really has: holes take no room, and none is to be given to them.
// False at its end. Where the file system cannot tell, all of the file is data.
bool NextData(int fd, off_t at, off_t* begin, off_t* end) {
  *begin = ::lseek(fd, at, SEEK_DATA);
  if (*begin < 0 && errno == ENXIO) return false;
  if (*begin < 0) *begin = at;
  *end = ::lseek(fd, *begin, SEEK_HOLE);
  if (*end < 0) *end = std::numeric_limits<off_t>::max();
  return true;
}

// The bytes that the file really has.
int64_t DataBytes(int fd) {
  int64_t bytes = 0;
  off_t begin = 0, end = 0;
  const off_t size = ::lseek(fd, 0, SEEK_END);
  for (off_t at = 0; at < size && NextData(fd, at, &begin, &end); at = end)
    bytes += std::min(end, size) - begin;
  return bytes;
}

Error TooLarge() {
  return {ErrorCode::kUnsupported,
          "the file and its write-ahead log hold more than the " +
              FormatBytes(static_cast<double>(kMaxCopiedBytes)) + " that are copied to read them",
          "once the recorder has ended, the log is part of the file and no copy is needed"};
}

// Holes stay holes.
Result<void> Copy(const OpenFile& from, const std::string& to, int64_t* left) {
  const auto out = CreateFileAnew(to, kPrivateFile);
  if (!out) return out.error();
  std::vector<char> buffer(kChunkBytes);
  off_t begin = 0, end = 0;
  off_t at = 0;
  while (NextData(from.fd.get(), at, &begin, &end)) {
    at = begin;
    const auto wanted = std::min(static_cast<uint64_t>(end - begin), uint64_t{buffer.size()});
    const ssize_t got = ::pread(from.fd.get(), buffer.data(), wanted, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError("cannot read the file being copied to '" + to + "'", errno);
    if (got == 0) break;
    if ((*left -= got) < 0) return TooLarge();
    for (ssize_t done = 0; done < got;) {
      const ssize_t put =
          ::pwrite(out->get(), buffer.data() + done, static_cast<size_t>(got - done), at + done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return ErrnoError("cannot write '" + to + "' (TMPDIR can name another directory)", errno);
      done += put;
    }
    at += got;
  }
  if (::ftruncate(out->get(), std::max(at, from.info.st_size)) != 0)  // a hole at its end
    return ErrnoError("cannot write '" + to + "' (TMPDIR can name another directory)", errno);
  return {};
}

}  // namespace

Result<Snapshot> Snapshot::Take(const std::string& path) {
  // The log lies beside the file that a symbolic link points to.
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return ErrnoError("cannot open '" + path + "'", error.value());
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto file = OpenRegular(real, 0);
    if (!file) return file.error();
    if (Head(file->fd.get(), kSqliteMagic.size()) != kSqliteMagic)
      return Error{ErrorCode::kCorrupt, "it is not an SQLite file (empty, cut off at the start, or foreign)",
                   ""};
    auto before = OpenLog(real);
    if (!before) return before.error();
    Snapshot snapshot;
    snapshot.bytes_ = DataBytes(file->fd.get());
    if (!*before) {
      snapshot.path_ = real;
      return snapshot;
    }
    auto directory = TemporaryDirectory::Make();
    if (!directory) return directory.error();
    snapshot.path_ = directory->path() + "/copy";
    snapshot.copy_.emplace(std::move(*directory));
    int64_t left = kMaxCopiedBytes;
    if (auto copied = Copy(*file, snapshot.path_, &left); !copied) return copied.error();
    if (auto copied = Copy((*before)->file, snapshot.path_ + kLogSuffix, &left); !copied)
      return copied.error();
    snapshot.bytes_ = kMaxCopiedBytes - left;
    const auto after = OpenLog(real);
    if (after && *after && (*after)->SameAs(**before)) return snapshot;
  }
  return Error{ErrorCode::kUnavailable, "'" + path + "' changes faster than it can be read", "try again"};
}

FileState FileState::Of(const std::string& path) {
  FileState state;
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  struct stat info {};
  if (error || ::stat(real.c_str(), &info) != 0) return state;
  state.device = info.st_dev;
  state.inode = info.st_ino;
  state.bytes = info.st_size;
  state.changed_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  struct stat log {};
  state.has_log = ::lstat((real.string() + kLogSuffix).c_str(), &log) == 0 && log.st_size > 0;
  return state;
}

}  // namespace fullbore::record
