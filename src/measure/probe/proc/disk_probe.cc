#include "measure/probe/proc/disk_probe.h"

#include <unistd.h>

#include <algorithm>

namespace fullbore::probe {

namespace {

constexpr double kSectorBytes = 512;  // of /proc/diskstats, whatever the device's own sector size
constexpr int kMaxDisks = 32;         // with six series each

// The fields after the name; see Documentation/admin-guide/iostats.rst in the kernel.
enum Field {
  kReads,
  kReadsMerged,
  kSectorsRead,
  kReadMs,
  kWrites,
  kWritesMerged,
  kSectorsWritten,
  kWriteMs,
  kInFlight,
  kBusyMs,
  kQueueMs,
  kFields
};

}  // namespace

DiskProbe::DiskProbe(const Machine& machine)
    : sys_block_(machine.root + "/sys/block/"), diskstats_(machine.root + "/proc/diskstats") {}

bool DiskProbe::IsWholeDisk(std::string_view device) const {
  for (const std::string_view prefix : {"loop", "ram", "zram", "sr", "fd"}) {
    if (device.starts_with(prefix)) return false;
  }
  return access((sys_block_ + std::string(device)).c_str(), F_OK) == 0;
}

DiskProbe::Disk DiskProbe::MakeDisk(const std::string& device) {
  Disk disk;
  disk.recorded = IsWholeDisk(device) && recorded_disks_ < kMaxDisks;
  if (!disk.recorded) return disk;
  ++recorded_disks_;
  const record::Labels labels = {{"device", device}};
  disk.read = KeyOf(Metric::kDiskRead, labels);
  disk.write = KeyOf(Metric::kDiskWrite, labels);
  disk.read_operations = KeyOf(Metric::kDiskReadOperations, labels);
  disk.write_operations = KeyOf(Metric::kDiskWriteOperations, labels);
  disk.busy = KeyOf(Metric::kDiskBusy, labels);
  disk.queue = KeyOf(Metric::kDiskQueue, labels);
  return disk;
}

void DiskProbe::Sample(int64_t t_ns, Sink& sink) {
  const auto text = diskstats_.Read();
  if (!text) return;
  LineCursor lines(*text);
  for (std::string_view line; lines.Next(line);) {
    WordCursor words(line);
    words.Skip(2);  // major, minor
    const std::string_view device = words.Next();
    auto found = disks_.find(device);
    if (found != disks_.end() && !found->second.recorded) continue;
    uint64_t field[kFields];
    const bool whole = std::ranges::all_of(field, [&words](uint64_t& value) {
      const auto count = words.NextCount();
      value = count.value_or(0);
      return count.has_value();
    });
    if (!whole || (field[kReads] == 0 && field[kWrites] == 0)) continue;
    if (found == disks_.end()) found = disks_.emplace(device, MakeDisk(std::string(device))).first;
    if (found->second.recorded) ReadDisk(found->second, field, t_ns, sink);
  }
}

void DiskProbe::ReadDisk(Disk& disk, const uint64_t (&field)[11], int64_t t_ns, Sink& sink) {
  const auto rate = [&](Counter& counter, uint64_t value, const record::SeriesKey& key, double factor) {
    if (const auto per_second = counter.RatePerSecond(t_ns, value))
      sink.Read(key, t_ns, *per_second * factor);
  };
  rate(disk.sectors_read, field[kSectorsRead], disk.read, kSectorBytes);
  rate(disk.sectors_written, field[kSectorsWritten], disk.write, kSectorBytes);
  rate(disk.reads, field[kReads], disk.read_operations, 1);
  rate(disk.writes, field[kWrites], disk.write_operations, 1);
  rate(disk.queue_ms, field[kQueueMs], disk.queue, 1e-3);
  if (const auto busy = disk.busy_ms.RatePerSecond(t_ns, field[kBusyMs])) {
    sink.Read(disk.busy, t_ns, std::min(*busy / 1e3, 1.0));
  }
}

}  // namespace fullbore::probe
