// Disks from /proc/diskstats: bytes, operations, busy time, requests in flight. Whole disks only, because
// partitions count the same bytes again; devices that were never used are left out.
#pragma once

#include <map>
#include <string>

#include "measure/probe/counter.h"
#include "measure/probe/probe.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

class DiskProbe : public Probe {
 public:
  explicit DiskProbe(const Machine& machine);

  std::string_view name() const override { return "disk"; }
  Rate rate() const override { return Rate::kSlow; }
  void Sample(int64_t t_ns, Sink& sink) override;

 private:
  struct Disk {
    bool recorded = false;  // false: a partition or RAM disk, skipped after the first look
    Counter reads, sectors_read, writes, sectors_written;
    Counter busy_ms{Counter::Width::k32}, queue_ms{Counter::Width::k32};
    record::SeriesKey read, write, read_operations, write_operations, busy, queue;
  };

  bool IsWholeDisk(std::string_view device) const;
  Disk MakeDisk(const std::string& device);
  static void ReadDisk(Disk& disk, const uint64_t (&field)[11], int64_t t_ns, Sink& sink);

  const std::string sys_block_;
  TextFile diskstats_;
  std::map<std::string, Disk, std::less<>> disks_;
  int recorded_disks_ = 0;
};

}  // namespace fullbore::probe
