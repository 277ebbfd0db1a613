#include "measure/isolate/layered_view.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "base/fd.h"
#include "base/guarded_file.h"
#include "base/text.h"
#include "measure/probe/proc/mounts.h"

namespace fullbore::isolate {

namespace fs = std::filesystem;
using probe::IsBelow;
using probe::Mount;

namespace {

// Options of overlayfs, the first that the kernel takes: names of one file stay one file (index), and metadata is changed
// without copying the data (metacopy). User namespaces have none of them: there, a directory that was there is renamed by
// copying (EXDEV), as between file systems.
constexpr std::array kOfRoot = {",index=on,metacopy=on,redirect_dir=on", ""};
constexpr std::array kOfUsers = {",userxattr"};
constexpr size_t kMostEntries = 4096;  // of a directory that is shown entry by entry

// What no overlay makes sense over: the kernel's own.
const std::set<std::string>& KernelTypes() {
  static const std::set<std::string> types = {
      "autofs",   "binfmt_misc", "bpf",        "cgroup",    "cgroup2", "configfs", "debugfs", "devpts",
      "devtmpfs", "efivarfs",    "fusectl",    "hugetlbfs", "mqueue",  "nsfs",     "proc",    "pstore",
      "ramfs",    "rpc_pipefs",  "securityfs", "selinuxfs", "sysfs",   "tracefs"};
  return types;
}

Error Failed(const std::string& what, const std::string& path) {
  return ErrnoError(fmt::format("cannot {} '{}'", what, path), errno);
}

// mount_setattr (Linux 5.12), whose numbers the headers of a distribution may lack.
bool SetReadOnly(const std::string& path, bool recursively) {
  struct {
    uint64_t set = 1 /* MOUNT_ATTR_RDONLY */, clear = 0, propagation = 0, user_namespace = 0;
  } attributes;
  constexpr long kMountSetattr = 442;
  const unsigned flags = recursively ? 0x8000 /* AT_RECURSIVE */ : 0;
  if (syscall(kMountSetattr, AT_FDCWD, path.c_str(), flags, &attributes, sizeof attributes) == 0) return true;
  struct statvfs status {};
  if (recursively || statvfs(path.c_str(), &status) != 0) return false;
  const unsigned long kept = status.f_flag & (ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_NOATIME | ST_NODIRATIME);
  return mount(nullptr, path.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kept, nullptr) == 0;
}

// The mount that a path leads to, -1 if the path leads nowhere; nothing where this user must not look.
std::optional<int64_t> MountIdOf(const std::string& path) {
  const UniqueFd place(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place.valid()) return errno == EACCES ? std::nullopt : std::optional<int64_t>(-1);
  const auto text = ReadFile(fmt::format("/proc/self/fdinfo/{}", place.get()));
  if (!text) return std::nullopt;
  for (const std::string_view line : Split(*text, '\n')) {
    if (line.starts_with("mnt_id:")) return ParseInt(Trim(line.substr(line.find(':') + 1)));
  }
  return std::nullopt;
}

// Those that no other mount hides, parents before what is mounted below them. What this user cannot reach counts: the
// kernel knows that it is there.
Result<std::vector<Mount>> VisibleMounts() {
  const auto table = ReadFile("/proc/self/mountinfo");
  if (!table) return table.error();
  std::vector<Mount> mounts = probe::ParseMountinfo(*table);
  std::erase_if(mounts, [](const Mount& mount) {
    const auto id = MountIdOf(mount.mount_point);
    return id && *id != mount.id;
  });
  std::ranges::sort(mounts, {}, &Mount::mount_point);
  return mounts;
}

Result<void> WriteWhole(const char* path, const std::string& text) {
  const UniqueFd file(open(path, O_WRONLY | O_CLOEXEC));
  if (!file.valid() || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return Failed("write", path);
  return {};
}

// Root's own mount namespace or, where that is not allowed, one in a user namespace, in which this user stays itself. True
// for the latter.
Result<bool> NewNamespaces() {
  if (unshare(CLONE_NEWNS) == 0) return false;
  const std::string user = fmt::format("{0} {0} 1", geteuid()), group = fmt::format("{0} {0} 1", getegid());
  int at_parents_death = 0;  // which the kernel forgets when credentials change
  (void)prctl(PR_GET_PDEATHSIG, &at_parents_death);
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return ErrnoError("cannot make namespaces for users and mounts", errno);
  (void)prctl(PR_SET_PDEATHSIG, at_parents_death);
  for (const auto& [file, text] : {std::pair<const char*, std::string>{"/proc/self/setgroups", "deny"},
                                   {"/proc/self/uid_map", user},
                                   {"/proc/self/gid_map", group}}) {
    if (auto written = WriteWhole(file, text); !written) return written.error();
  }
  return true;
}

// A directory with the mode, the times and, as far as we may, the owner of another.
void MakeLike(const std::string& original, const std::string& made) {
  struct stat status {};
  if (stat(original.c_str(), &status) != 0) return;
  (void)mkdir(made.c_str(), kPrivateDirectory);
  (void)!chown(made.c_str(), status.st_uid, status.st_gid);
  (void)chmod(made.c_str(), status.st_mode & 07777);
  const timespec times[2] = {status.st_atim, status.st_mtim};
  (void)utimensat(AT_FDCWD, made.c_str(), times, 0);
}

class Builder {
 public:
  Builder(const LayeredView& view, std::vector<Mount> mounts, bool of_user)
      : view_(view), root_(view.directory + "/root"), mounts_(std::move(mounts)), of_user_(of_user) {}

  Result<void> Build();

 private:
  // Shows `place` in the view, and what is mounted below it.
  Result<void> Place(const std::string& place);
  Result<void> PlaceMountsBelow(const std::string& place);
  Result<void> PlaceKernels(const std::string& place);
  Result<void> Bind(const std::string& place, bool read_only);
  Result<void> EntryByEntry(const std::string& place);
  Result<void> PlaceEntry(const std::string& path, const struct stat& status);
  Result<void> Overlay(const std::string& place);
  Result<std::string> UpperFor(const std::string& place);
  void MakeWhatIsReached(const std::string& place, const std::string& upper);
  Result<void> Memory();
  Result<void> ShowAsTheyAre();

  std::string Shown(const std::string& place) const { return place == "/" ? root_ : root_ + place; }
  const Mount* MountAt(const std::string& place) const;
  bool HasMountsBelow(const std::string& place) const;
  bool IsNextBelow(const Mount& mount, const std::string& place) const;
  bool IsInMemory(const std::string& place) const;

  const LayeredView& view_;
  const std::string root_;
  const std::vector<Mount> mounts_;
  const bool of_user_;
  bool has_memory_ = false;
  int count_ = 0;
  std::string layers_;  // "place\0where\0"...
};

const Mount* Builder::MountAt(const std::string& place) const {
  const auto found = std::ranges::find(mounts_, place, &Mount::mount_point);
  return found == mounts_.end() ? nullptr : &*found;
}

bool Builder::HasMountsBelow(const std::string& place) const {
  return std::ranges::any_of(mounts_, [&](const Mount& mount) {
    return mount.mount_point != place && IsBelow(mount.mount_point, place);
  });
}

bool Builder::IsInMemory(const std::string& place) const {
  const Mount* above = nullptr;  // the nearest: they are sorted
  for (const Mount& mount : mounts_) {
    if (IsBelow(place, mount.mount_point)) above = &mount;
  }
  return above != nullptr && above->file_system == "tmpfs";
}

// One file system in memory for all upper layers that belong there.
Result<void> Builder::Memory() {
  if (has_memory_) return {};
  const std::string place = view_.directory + "/memory";
  if (auto made = MakeDirectory(place, kPrivateDirectory); !made) return made;
  if (mount("fullbore", place.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") != 0)
    return Failed("mount memory at", place);
  has_memory_ = true;
  return {};
}

// A pair of new directories for an overlay, "upper" and "work"; the root of what it shows is as that of the place.
Result<std::string> Builder::UpperFor(const std::string& place) {
  std::string pair;
  if (const auto kept = view_.outlive.find(place); kept != view_.outlive.end()) {
    pair = kept->second;
  } else if (IsInMemory(place)) {
    if (auto made = Memory(); !made) return made.error();
    pair = fmt::format("{}/memory/{}", view_.directory, count_++);
  } else {
    pair = fmt::format("{}/upper/{}", view_.directory, count_++);
  }
  for (const std::string& path : {pair, pair + "/upper", pair + "/work"}) {
    if (auto made = MakeDirectory(path, kPrivateDirectory); !made) return made.error();
  }
  MakeLike(place, pair + "/upper");
  if (of_user_) MakeWhatIsReached(place, pair + "/upper");
  return pair;
}

void Builder::MakeWhatIsReached(const std::string& place, const std::string& upper) {
  for (const std::string& path : view_.reached) {
    if (!IsBelow(path, place)) continue;
    std::string there;  // from the place on
    for (const fs::path& part : fs::path(path).lexically_relative(place)) {
      there += "/" + part.string();
      const std::string original = (place == "/" ? "" : place) + there;
      std::error_code unknown;
      if (!fs::is_directory(fs::symlink_status(original, unknown)) || MountAt(original) != nullptr) break;
      MakeLike(original, upper + there);
    }
  }
}

// Directories are named by descriptors: their paths may hold what separates options.
Result<void> Builder::Overlay(const std::string& place) {
  const auto pair = UpperFor(place);
  if (!pair) return pair.error();
  const auto open_directory = [](const std::string& path) {
    return UniqueFd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  };
  const UniqueFd lower = open_directory(place), upper = open_directory(*pair + "/upper"),
                 work = open_directory(*pair + "/work");
  if (!lower.valid()) return Failed("open", place);
  const std::string layers =
      fmt::format("lowerdir=/proc/self/fd/{},upperdir=/proc/self/fd/{},workdir=/proc/self/fd/{}", lower.get(),
                  upper.get(), work.get());
  for (const char* options : of_user_ ? std::span<const char* const>(kOfUsers) : kOfRoot) {
    if (mount("fullbore", Shown(place).c_str(), "overlay", 0, (layers + options).c_str()) != 0) continue;
    layers_ += place + '\0' + *pair + "/upper" + '\0';
    return {};
  }
  return Failed("lay an overlay over", place);
}

Result<void> Builder::Bind(const std::string& place, bool read_only) {
  const std::string shown = Shown(place);
  if (mount(place.c_str(), shown.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return Failed("show", place);
  if (read_only && !SetReadOnly(shown, true) && !SetReadOnly(shown, false))
    return Failed("make read only", place);
  return {};
}

// Devices can be written to on a read-only file system, and sockets connected to; neither works through an overlay.
Result<void> Builder::PlaceKernels(const std::string& place) {
  if (auto bound = Bind(place, place != "/proc" && place != "/dev"); !bound) return bound;
  if (place == "/dev" && !SetReadOnly(Shown(place), false)) return Failed("make read only", place);
  if (place == "/proc" && !of_user_) {
    for (const char* part : {"/proc/sys", "/proc/sysrq-trigger"}) {
      if (access(part, F_OK) != 0) continue;
      if (auto bound = Bind(part, true); !bound) return bound;
    }
  }
  for (const Mount& mount : mounts_) {
    const bool is_real =
        !KernelTypes().contains(mount.file_system) && (place == "/dev" || mount.file_system != "tmpfs");
    if (!is_real || !IsNextBelow(mount, place)) continue;
    if (auto placed = Place(mount.mount_point); !placed) return placed;
  }
  return {};
}

Result<void> Builder::Place(const std::string& place) {
  const Mount* mount = MountAt(place);
  if (place == "/proc" || place == "/sys" || place == "/dev" || place == "/run") return PlaceKernels(place);
  if (mount != nullptr && KernelTypes().contains(mount->file_system)) return Bind(place, true);
  struct stat status {};
  struct statvfs file_system {};
  if (stat(place.c_str(), &status) != 0) return {};  // nobody here can reach it
  if (!S_ISDIR(status.st_mode)) return Bind(place, true);
  const bool is_read_only =
      statvfs(place.c_str(), &file_system) == 0 && (file_system.f_flag & ST_RDONLY) != 0;
  if (!is_read_only || place == "/") {
    const auto laid = Overlay(place);
    if (laid) return PlaceMountsBelow(place);
    if (place == "/" || HasMountsBelow(place)) {
      if (of_user_) return EntryByEntry(place);
      if (place == "/") return laid;
    }
  }
  if (auto bound = Bind(place, true); !bound) return bound;
  return PlaceMountsBelow(place);
}

// Whether it is mounted below the place, and on nothing else that is: that one places it.
bool Builder::IsNextBelow(const Mount& mount, const std::string& place) const {
  const auto lies_between = [&](const Mount& other) {
    return &other != &mount && other.mount_point != place && IsBelow(other.mount_point, place) &&
           IsBelow(mount.mount_point, other.mount_point);
  };
  return mount.mount_point != place && IsBelow(mount.mount_point, place) &&
         std::ranges::none_of(mounts_, lies_between);
}

Result<void> Builder::PlaceMountsBelow(const std::string& place) {
  for (const Mount& mount : mounts_) {
    if (!IsNextBelow(mount, place)) continue;
    if (auto placed = Place(mount.mount_point); !placed) return placed;
  }
  return {};
}

Result<void> Builder::EntryByEntry(const std::string& place) {
  struct Close {
    void operator()(DIR* directory) const { closedir(directory); }
  };
  const std::unique_ptr<DIR, Close> directory(opendir(place.c_str()));
  if (!directory && errno == EACCES) return {};  // nobody here can reach what is in it
  if (!directory) return Failed("list", place);
  layers_ += place + '\0' + Shown(place) + '\0';
  size_t count = 0;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (++count > kMostEntries)
      return Error{ErrorCode::kUnavailable,
                   fmt::format("'{}' has mounts below it and more than {} entries", place, kMostEntries), ""};
    const std::string path = (place == "/" ? "" : place) + "/" + name;
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) continue;
    if (auto placed = PlaceEntry(path, status); !placed) return placed;
  }
  return {};
}

Result<void> Builder::PlaceEntry(const std::string& path, const struct stat& status) {
  const std::string shown = Shown(path);
  std::error_code failed;
  if (S_ISLNK(status.st_mode)) {
    fs::create_symlink(fs::read_symlink(path, failed), shown, failed);
    return {};
  }
  if (S_ISDIR(status.st_mode)) {
    if (mkdir(shown.c_str(), 0700) != 0) return Failed("make", shown);
    (void)chmod(shown.c_str(), status.st_mode & 07777);
    return Place(path);
  }
  if (auto made = CreateFile(shown, kPrivateFile); !made) return made.error();
  return Bind(path, true);
}

Result<void> Builder::ShowAsTheyAre() {
  for (const std::string& path : view_.written_through) {
    if (mount(path.c_str(), Shown(path).c_str(), nullptr, MS_BIND, nullptr) != 0) return Failed("show", path);
  }
  return {};
}

Result<void> Builder::Build() {
  for (const std::string& path : {root_, view_.directory + "/upper"}) {
    if (auto made = MakeDirectory(path, kPrivateDirectory); !made) return made;
  }
  if (chmod(root_.c_str(), 0755) != 0) return Failed("set the mode of", root_);
  if (mount(root_.c_str(), root_.c_str(), nullptr, MS_BIND, nullptr) != 0) return Failed("show", root_);
  if (auto placed = Place("/"); !placed) return placed;
  for (const auto& [place, scratch] : view_.outlive)
    (void)Overlay(place);  // else it is as any other directory
  if (auto shown = ShowAsTheyAre(); !shown) return shown;
  return WriteFileAtOnce(view_.directory + "/layers", layers_, kPrivateFile);
}

Result<void> MakeRoot(const std::string& root) {
  if (chdir(root.c_str()) != 0) return Failed("enter", root);
  if (syscall(SYS_pivot_root, ".", ".") == 0) {
    if (umount2(".", MNT_DETACH) != 0) return Failed("leave", "/");
  } else if (chroot(".") != 0) {  // in a changed root, and in one that the kernel was started with
    return Failed("change the root to", root);
  }
  return {};
}

}  // namespace

Result<void> Enter(const LayeredView& view) {
  std::error_code failed;
  const std::string here = fs::current_path(failed).string();
  if (failed) return ErrnoError("cannot tell the working directory", failed.value());
  auto mounts = VisibleMounts();
  if (!mounts) return mounts.error();
  LayeredView whole = view;
  whole.reached.push_back(here);
  const auto of_user = NewNamespaces();
  if (!of_user) return of_user.error();
  // What is mounted later outside may show here; what happens here shows nowhere else.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return Failed("make a slave of", "/");
  if (auto built = Builder(whole, std::move(*mounts), *of_user).Build(); !built) return built;
  if (auto made = MakeRoot(view.directory + "/root"); !made) return made;
  if (chdir(here.c_str()) != 0) return Failed("enter", here);
  return {};
}

std::string WrittenAs(const std::string& directory, const std::string& path) {
  const auto text = ReadFile(directory + "/layers");
  if (!text) return "";
  const std::vector<std::string_view> parts = Split(*text, '\0');
  std::string place, where;
  for (size_t i = 0; i + 1 < parts.size(); i += 2) {
    const std::string each(parts[i]);
    if (!IsBelow(path, each) || each.size() < place.size()) continue;
    place = each;
    where = parts[i + 1];
  }
  if (where.empty()) return "";
  return where + (place == "/" ? path : path.substr(place.size()));
}

}  // namespace fullbore::isolate
