#include "measure/probe/shm/shm_probe.h"

#include <sys/statvfs.h>

namespace fullbore::probe {

ShmProbe::ShmProbe(const Machine& machine)
    : path_(machine.root + "/dev/shm"), used_(KeyOf(Metric::kShmUsed)), total_(KeyOf(Metric::kShmTotal)) {}

void ShmProbe::Sample(int64_t t_ns, Sink& sink) {
  struct statvfs space;
  if (statvfs(path_.c_str(), &space) != 0 || space.f_blocks == 0) return;
  const auto block_bytes = static_cast<double>(space.f_frsize);
  sink.Read(used_, t_ns, static_cast<double>(space.f_blocks - space.f_bfree) * block_bytes);
  sink.Read(total_, t_ns, static_cast<double>(space.f_blocks) * block_bytes);
}

}  // namespace fullbore::probe
