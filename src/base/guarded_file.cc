#include "base/guarded_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace fullbore {

namespace {

namespace fs = std::filesystem;

constexpr int kAlways = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

std::string Quoted(const std::string& path) { return "'" + path + "'"; }

std::string ParentOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

std::string WithoutEndingSlash(std::string path) {  // lstat would follow a link in front of a slash
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

Error PlantedError(const std::string& path) {
  return {ErrorCode::kPermission,
          Quoted(path) + " belongs to another user, in a directory that everybody can write to", ""};
}

Result<void> CheckNotPlanted(const std::string& path, const struct stat& entry) {
  struct stat parent {};
  const std::string directory = ParentOf(path);
  if (stat(directory.c_str(), &parent) != 0) return ErrnoError("cannot stat " + Quoted(directory), errno);
  if (CouldBePlanted(entry, parent, geteuid())) return PlantedError(path);
  return {};
}

Error NotRegularError(const std::string& path) {
  return {ErrorCode::kCorrupt, Quoted(path) + " is not a regular file", ""};
}

Error OpenError(const std::string& path, int error_number) {
  if (error_number == ELOOP) {
    return {ErrorCode::kPermission, "cannot open " + Quoted(path) + ": it is a symbolic link", ""};
  }
  return ErrnoError("cannot open " + Quoted(path), error_number);
}

Result<UniqueFd> OpenChecked(const std::string& path, int flags, mode_t mode) {
  UniqueFd fd(open(path.c_str(), flags | kAlways, mode));
  if (!fd.valid()) return OpenError(path, errno);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return ErrnoError("cannot stat " + Quoted(path), errno);
  if (!S_ISREG(status.st_mode)) return NotRegularError(path);
  if (auto checked = CheckNotPlanted(path, status); !checked) return checked.error();
  return fd;
}

// 64 unpredictable bits, as text.
std::string RandomName() {
  unsigned char bytes[8];
  // Up to 256 bytes are never cut short.
  FB_CHECK(getrandom(bytes, sizeof bytes, 0) == static_cast<ssize_t>(sizeof bytes));
  std::string name;
  for (const unsigned char byte : bytes) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return name;
}

Result<void> WriteFully(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError("cannot write " + Quoted(path), errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

int Rename(const std::string& from, const std::string& to, IfThere if_there) {
  if (if_there == IfThere::kReplace) return std::rename(from.c_str(), to.c_str());
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  // A file system that does not know how: a second name, if it is free, then without the first.
  return link(from.c_str(), to.c_str()) == 0 ? unlink(from.c_str()) : -1;
}

}  // namespace

bool CouldBePlanted(const struct stat& entry, const struct stat& parent, uid_t user) {
  const bool trusted_owner = entry.st_uid == user || entry.st_uid == 0;
  return !trusted_owner && (parent.st_mode & S_IWOTH) != 0;
}

Result<UniqueFd> CreateFile(const std::string& path, mode_t mode) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | kAlways, mode));
  if (!fd.valid()) return ErrnoError("cannot create " + Quoted(path), errno);
  return fd;
}

Result<UniqueFd> CreateFileAnew(const std::string& path, mode_t mode) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    return ErrnoError("cannot replace " + Quoted(path), errno);
  return CreateFile(path, mode);
}

Result<UniqueFd> OpenOrCreateFile(const std::string& path, mode_t mode) {
  return OpenChecked(path, O_RDWR | O_CREAT, mode);
}

Result<bool> CreateFileIfMissing(const std::string& path, mode_t mode) {
  const auto created = CreateFile(path, mode);
  if (created) return true;
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return created.error();
  if (!S_ISREG(status.st_mode)) return NotRegularError(path);
  if (auto checked = CheckNotPlanted(path, status); !checked) return checked.error();
  return false;
}

Result<UniqueFd> OpenRegularFile(const std::string& path) { return OpenChecked(path, O_RDONLY, 0); }

Result<void> WriteFileAtOnce(const std::string& path, std::string_view text, mode_t mode, IfThere if_there) {
  const std::string part = path + "." + RandomName() + ".part";
  auto fd = CreateFile(part, mode);
  if (!fd) return Error{fd.error().code, "cannot write " + Quoted(path) + ": " + fd.error().text, ""};
  auto written = WriteFully(fd->get(), text, path);
  // A network file system may say only now that the disk is full.
  if (close(fd->release()) != 0 && written) written = ErrnoError("cannot write " + Quoted(path), errno);
  if (written && Rename(part, path, if_there) != 0)
    written = ErrnoError("cannot write " + Quoted(path), errno);
  if (!written) unlink(part.c_str());
  return written;
}

Result<void> MakeDirectory(const std::string& path, mode_t mode) {
  struct stat entry {};
  if (stat(path.c_str(), &entry) != 0) {
    if (errno != ENOENT) return ErrnoError("cannot create " + Quoted(path), errno);
    const std::string plain = WithoutEndingSlash(path), parent = ParentOf(plain);
    if (parent != plain) {
      if (auto made = MakeDirectory(parent, kPrivateDirectory); !made) return made;
    }
    if (mkdir(plain.c_str(), mode) == 0) return {};
    // Another of our processes may create it at the same moment: then it already existed.
    const int error_number = errno;
    if (error_number != EEXIST || stat(plain.c_str(), &entry) != 0)
      return ErrnoError("cannot create " + Quoted(path), error_number);
  }
  if (!S_ISDIR(entry.st_mode)) return ErrnoError("cannot create " + Quoted(path), ENOTDIR);
  return {};
}

Result<void> MakeTrustedDirectory(const std::string& path, mode_t mode) {
  if (auto made = MakeDirectory(path, mode); !made) return made;
  // For a symbolic link (to a larger disk, say) both the link and its target are checked.
  const std::string plain = WithoutEndingSlash(path);
  std::error_code broken;
  const std::string real = fs::canonical(plain, broken);
  if (broken) return ErrnoError("cannot use " + Quoted(path), broken.value());
  for (const std::string& at : {plain, real}) {
    struct stat entry {};
    if (lstat(at.c_str(), &entry) != 0) return ErrnoError("cannot stat " + Quoted(at), errno);
    if (auto checked = CheckNotPlanted(at, entry); !checked) return checked;
  }
  return {};
}

Result<std::string> MakeUniqueDirectory(const std::string& prefix) {
  std::string path = prefix + ".XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return ErrnoError("cannot create " + Quoted(path), errno);
  return path;
}

}  // namespace fullbore
