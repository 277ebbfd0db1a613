#include "loader/core/source/directory_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"

namespace fullbore::loader {

namespace {

struct Identity {
  dev_t device;
  ino_t inode;
  bool operator==(const Identity& other) const { return device == other.device && inode == other.inode; }
};

class Walker {
 public:
  Walker(const std::string& root, const Store::WalkVisitor& visit) : root_(root), visit_(visit) {}

  // `path` is relative to the root; `fd` is the same, opened. Returns an errno; where_ is then its directory.
  int Visit(UniqueFd fd, const std::string& path) {
    where_ = path;
    struct stat status;
    if (fstat(fd.get(), &status) != 0) return errno;
    const Identity self{status.st_dev, status.st_ino};
    if (std::find(above_.begin(), above_.end(), self) != above_.end()) return 0;  // a link upwards
    visit_(path, {});
    std::vector<std::string> below;
    if (const int error = ReadNames(fd, path, below); error != 0) return error;
    fd.reset();  // one descriptor at any depth; children are opened by their path
    above_.push_back(self);
    for (const std::string& name : below) {
      const std::string child = path.empty() ? name : path + "/" + name;
      UniqueFd child_fd(open((root_ + "/" + child).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!child_fd.valid()) {
        where_ = child;
        return errno;
      }
      if (const int error = Visit(std::move(child_fd), child); error != 0) return error;
    }
    above_.pop_back();
    return 0;
  }

  const std::string& where() const { return where_; }

 private:
  int ReadNames(const UniqueFd& fd, const std::string& path, std::vector<std::string>& below) {
    const int own = fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
    if (own < 0) return errno;
    DIR* names = fdopendir(own);  // takes `own`; reads 32 KiB of names per system call
    if (!names) {
      const int error = errno;
      UniqueFd closes(own);
      return error;
    }
    errno = 0;
    while (const dirent* entry = readdir(names)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      const unsigned char type = TypeOf(fd, *entry);
      if (type == DT_DIR) below.emplace_back(name);
      if (type == DT_REG) visit_(path, name);
      errno = 0;
    }
    const int error = errno;
    closedir(names);
    return error;
  }

  // The type of what a link leads to. A dangling link counts as a file: reading it says what is missing.
  static unsigned char TypeOf(const UniqueFd& fd, const dirent& entry) {
    if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return entry.d_type;
    struct stat status;
    if (fstatat(fd.get(), entry.d_name, &status, 0) != 0) return DT_REG;
    if (S_ISDIR(status.st_mode)) return DT_DIR;
    return S_ISREG(status.st_mode) ? DT_REG : DT_UNKNOWN;
  }

  const std::string& root_;
  const Store::WalkVisitor& visit_;
  std::vector<Identity> above_;
  std::string where_;
};

}  // namespace

Result<void> WalkDirectory(const std::string& root, const Store::WalkVisitor& visit) {
  UniqueFd fd(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(fmt::format("cannot list '{}'", root), errno);
  Walker walker(root, visit);
  if (const int error = walker.Visit(std::move(fd), ""); error != 0) {
    return ErrnoError(fmt::format("cannot list '{}/{}'", root, walker.where()), error);
  }
  return {};
}

}  // namespace fullbore::loader
