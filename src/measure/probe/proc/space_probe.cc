#include "measure/probe/proc/space_probe.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/fd.h"

namespace fullbore::probe {

namespace {

constexpr size_t kMost = 16;
constexpr int64_t kListEveryNs = 60 * kNsPerSecond;   // mounts come and go seldom
constexpr int64_t kSampleEveryNs = 5 * kNsPerSecond;  // and no disk fills within seconds

constexpr std::string_view kKinds[] = {"ext2", "ext3", "ext4",  "xfs",   "btrfs",    "zfs",   "f2fs",
                                       "jfs",  "vfat", "exfat", "ntfs3", "bcachefs", "tmpfs", "overlay"};
// The system's own; /dev/shm has a series of its own.
constexpr std::string_view kSystemPlaces[] = {"/dev", "/proc", "/sys", "/run", "/boot", "/etc", "/snap"};

bool IsBelow(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

bool IsForFiles(const Mount& mount) {
  const bool system =
      std::ranges::any_of(kSystemPlaces, [&](auto place) { return IsBelow(mount.mount_point, place); });
  return !system && std::ranges::find(kKinds, mount.file_system) != std::end(kKinds) &&
         (mount.super_options == "rw" || mount.super_options.starts_with("rw,"));
}

}  // namespace

std::vector<Mount> LocalFileSystems(const std::vector<Mount>& mounts) {
  std::map<std::string, Mount> shortest;  // by device
  for (const Mount& mount : mounts) {
    if (!IsForFiles(mount)) continue;
    const auto [known, is_new] = shortest.try_emplace(mount.device_number, mount);
    if (!is_new && mount.mount_point.size() < known->second.mount_point.size()) known->second = mount;
  }
  std::vector<Mount> local;
  for (auto& [device, mount] : shortest) local.push_back(std::move(mount));
  std::ranges::sort(
      local, {}, [](const Mount& mount) { return std::pair(mount.mount_point.size(), mount.mount_point); });
  if (local.size() > kMost) local.resize(kMost);
  return local;
}

void SpaceProbe::Sample(int64_t t_ns, Sink& sink) {
  if (sampled_ns_ != 0 && t_ns - sampled_ns_ < kSampleEveryNs) return;
  sampled_ns_ = t_ns;
  if (listed_ns_ == 0 || t_ns - listed_ns_ >= kListEveryNs) {
    const auto text = ReadFile(root_ + "/proc/self/mountinfo");
    if (!text) return;
    listed_ns_ = t_ns;
    places_.clear();
    for (const Mount& mount : LocalFileSystems(ParseMountinfo(*text))) {
      const record::Labels labels = {{"mount", mount.mount_point}};
      places_.push_back(
          {mount.mount_point, KeyOf(Metric::kDiskSpaceUsed, labels), KeyOf(Metric::kDiskSpaceTotal, labels)});
    }
  }
  for (const Place& place : places_) {
    struct statvfs space {};
    if (statvfs((root_ + place.path).c_str(), &space) != 0 || space.f_blocks == 0) continue;
    const auto block_bytes = static_cast<double>(space.f_frsize);
    // As df counts: what only root may use is neither taken nor to be had.
    const auto used = static_cast<double>(space.f_blocks - space.f_bfree) * block_bytes;
    sink.Read(place.used, t_ns, used);
    sink.Read(place.total, t_ns, used + static_cast<double>(space.f_bavail) * block_bytes);
  }
}

}  // namespace fullbore::probe
