#include "measure/probe/proc/mounts.h"

#include <algorithm>
#include <filesystem>

#include "base/fd.h"
#include "base/text.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

namespace {

namespace fs = std::filesystem;

// mountinfo writes blanks and backslashes in paths as "\040".
std::string Unescape(std::string_view text) {
  std::string plain;
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) &&
        octal(text[i + 3])) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool IsRemote(const Mount& mount) {
  for (const std::string_view type : {"nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "gpfs", "beegfs", "9p",
                                      "afs", "glusterfs", "wekafs", "virtiofs", "pvfs2"}) {
    if (mount.file_system == type) return true;
  }
  // s3fs, gcsfuse, sshfs, goofys, ...: file systems in user space serve remote objects, with few exceptions.
  return mount.file_system.starts_with("fuse") && mount.file_system != "fuseblk";
}

// The whole disk behind a device directory of sysfs: a partition's lies inside its disk's.
std::string WholeDisk(const fs::path& link) {
  std::error_code error;
  const fs::path directory = fs::canonical(link, error);
  if (error) return "";
  const bool partition = fs::exists(directory / "partition", error);
  return (partition ? directory.parent_path() : directory).filename().string();
}

std::string DiskOf(const std::string& root, const Mount& mount) {
  std::string disk = WholeDisk(fs::path(root + "/sys/dev/block") / mount.device_number);
  if (!disk.empty() || !mount.source.starts_with("/dev/")) return disk;
  // btrfs and some others mount with an anonymous device number, but name the device.
  return WholeDisk(fs::path(root + "/sys/class/block") / fs::path(mount.source).filename());
}

}  // namespace

bool IsBelow(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

std::vector<Mount> ParseMountinfo(std::string_view text) {
  std::vector<Mount> mounts;
  LineCursor lines(text);
  for (std::string_view line; lines.Next(line);) {
    // 27 1 254:0 /root /mount/point rw,relatime shared:1 ... - ext4 /dev/vda rw,discard
    constexpr std::string_view kDash = " - ";
    const size_t dash = line.find(kDash);
    if (dash == std::string_view::npos) continue;
    WordCursor left(line.substr(0, dash));
    WordCursor right(line.substr(dash + kDash.size()));
    Mount mount;
    mount.id = ParseInt(left.Next()).value_or(0);
    left.Skip(1);
    mount.device_number = left.Next();
    mount.root = Unescape(left.Next());
    mount.mount_point = Unescape(left.Next());
    mount.file_system = right.Next();
    mount.source = Unescape(right.Next());
    mount.super_options = right.Next();
    if (!mount.mount_point.empty() && !mount.file_system.empty()) mounts.push_back(std::move(mount));
  }
  return mounts;
}

Result<DataDevice> DeviceOfPath(const std::string& root, const std::string& path) {
  std::error_code error;
  const std::string real = fs::weakly_canonical(path, error).string();
  if (error) return ErrnoError("cannot resolve '" + path + "'", error.value());
  Result<std::string> text = ReadFile(root + "/proc/self/mountinfo");
  if (!text) return text.error();
  const std::vector<Mount> mounts = ParseMountinfo(*text);
  const Mount* best = nullptr;
  for (const Mount& mount : mounts) {
    if (!IsBelow(real, mount.mount_point)) continue;
    // Of two mounts on the same mount point the later one hides the earlier.
    if (best == nullptr || mount.mount_point.size() >= best->mount_point.size()) best = &mount;
  }
  if (best == nullptr) {
    return Error{ErrorCode::kNotFound,
                 "no mount of '" + root + "/proc/self/mountinfo' contains '" + real + "'", ""};
  }
  const bool in_memory = best->file_system == "tmpfs" || best->file_system == "ramfs";
  return DataDevice{DiskOf(root, *best), best->mount_point, best->file_system,
                    best->source,        IsRemote(*best),   in_memory};
}

}  // namespace fullbore::probe
