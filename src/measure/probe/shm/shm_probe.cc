#include "measure/probe/shm/shm_probe.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace fullbore::probe {

namespace {

constexpr char kPath[] = "/dev/shm";
constexpr int64_t kEmitNs = 900 * kNsPerMs;  // the look nearest to a second
constexpr double kNearlyFull = 0.9;

}  // namespace

ShmProbe::ShmProbe(const Machine& machine, std::function<int64_t()> a_worker)
    : root_(machine.root),
      a_worker_(std::move(a_worker)),
      used_(KeyOf(Metric::kShmUsed)),
      total_(KeyOf(Metric::kShmTotal)) {}

std::string ShmProbe::PathFor(int64_t worker) const {
  return worker > 0 ? fmt::format("{}/proc/{}/root{}", root_, worker, kPath) : root_ + kPath;
}

void ShmProbe::Sample(int64_t t_ns, Sink& sink) {
  const int64_t worker = a_worker_ ? a_worker_() : 0;
  struct statvfs space;
  // Another user's process does not show its root, nor one that has just ended.
  const bool of_worker = worker > 0 && statvfs(PathFor(worker).c_str(), &space) == 0;
  if (of_worker && !std::exchange(saw_worker_, true)) emitted_ns_ = 0, emitted_ = most_ = 0;
  if (!of_worker && (saw_worker_ || statvfs(PathFor(0).c_str(), &space) != 0)) return;
  if (space.f_blocks == 0) return;
  const auto block_bytes = static_cast<double>(space.f_frsize);
  const double used = static_cast<double>(space.f_blocks - space.f_bfree) * block_bytes;
  const double total = static_cast<double>(space.f_blocks) * block_bytes;
  most_ = std::max(most_, used);
  if (of_worker && used > kNearlyFull * total) Warn(used, total, sink);
  // A rise is passed on at once: the command may end by it before the second is over.
  if (emitted_ns_ != 0 && t_ns - emitted_ns_ < kEmitNs && most_ <= emitted_) return;
  sink.Read(used_, t_ns, most_);
  sink.Read(total_, t_ns, total);
  emitted_ = std::exchange(most_, 0);
  emitted_ns_ = t_ns;
}

void ShmProbe::Warn(double used, double total, Sink& sink) {
  if (std::exchange(said_, true)) return;
  sink.Say(record::Severity::kInfo, "/dev/shm",
           fmt::format(
               "{} of its {} are in use: a loader's worker that finds no room there ends the run (docker run "
               "--shm-size=8g or --ipc=host; or fewer workers, a smaller prefetch_factor)",
               FormatBytes(used), FormatBytes(total)));
}

}  // namespace fullbore::probe
