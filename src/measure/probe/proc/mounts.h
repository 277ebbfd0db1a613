// What is mounted where, from /proc/self/mountinfo, and hence which disk a path is on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fullbore::probe {

struct Mount {
  int64_t id = 0;
  std::string device_number;  // "259:2"
  std::string root;           // the directory of the file system that is mounted
  std::string mount_point;
  std::string file_system;    // "ext4", "nfs4", "cgroup2"
  std::string source;         // "/dev/nvme0n1p2", "server:/export"
  std::string super_options;  // "rw,memory"
};

std::vector<Mount> ParseMountinfo(std::string_view text);  // lines that do not parse are skipped

// Whether `path` is `directory` or lies below it; both without a slash at the end, except "/" itself.
bool IsBelow(std::string_view path, std::string_view directory);

// Where the files below a path come from.
struct DataDevice {
  std::string
      device;  // as in /proc/diskstats and in the `device` label: "nvme0n1"; empty where none is known
  std::string mount_point;
  std::string file_system;
  std::string source;
  bool remote = false;     // reached over the network (NFS, Lustre, ...)
  bool in_memory = false;  // tmpfs, ramfs
};

// `path` as the training sees it: resolved by the system, so symbolic links are followed.
Result<DataDevice> DeviceOfPath(const std::string& root, const std::string& path);

}  // namespace fullbore::probe
