#include "measure/probe/proc/cpu_probe.h"

#include "base/clock.h"
#include "base/text.h"

namespace fullbore::probe {

namespace {

// Reading /proc/stat sums interrupt counts over all cores: on a machine with more cores than this, five
// readings per second would no longer be cheap.
constexpr int64_t kMaxCoresForFastRate = 64;

// A little less than a second, so that of 5 readings per second every fifth qualifies in spite of jitter.
constexpr int64_t kSlowIntervalNs = kNsPerSecond - 100 * kNsPerMs;

int64_t CountCores(std::string_view stat) {
  int64_t cores = 0;
  LineCursor lines(stat);
  for (std::string_view line; lines.Next(line) && line.starts_with("cpu");) ++cores;
  return cores - 1;  // the first line is the sum
}

uint64_t Grown(uint64_t before, uint64_t now) { return now > before ? now - before : 0; }

}  // namespace

CpuProbe::CpuProbe(const Machine& machine)
    : stat_(machine.root + "/proc/stat"),
      loadavg_(machine.root + "/proc/loadavg"),
      utilization_(KeyOf(Metric::kCpuUtilization)),
      user_(KeyOf(Metric::kCpuUser)),
      system_(KeyOf(Metric::kCpuSystem)),
      iowait_(KeyOf(Metric::kCpuIowait)),
      steal_(KeyOf(Metric::kCpuSteal)),
      load1_(KeyOf(Metric::kLoad1)) {
  if (const auto text = stat_.Read()) {
    const int64_t cores = CountCores(*text);
    per_core_ = cores <= kMaxCoreSeries;
    if (cores > kMaxCoresForFastRate) rate_ = Rate::kSlow;
  }
}

bool CpuProbe::Parse(std::string_view line, Times& times) {
  WordCursor words(line);
  words.Next();
  uint64_t value[8];  // user nice system idle iowait irq softirq steal; kernels before 2.6.11 lack the last
  for (uint64_t& v : value) {
    const std::optional<uint64_t> count = words.NextCount();
    if (!count) return false;
    v = *count;
  }
  times = {value[0] + value[1], value[2] + value[5] + value[6], value[3], value[4], value[7]};
  return true;
}

void CpuProbe::Sample(int64_t t_ns, Sink& sink) {
  const auto text = stat_.Read();
  if (!text) return;
  const bool slow = t_ns - last_slow_ns_ >= kSlowIntervalNs;
  LineCursor lines(*text);
  for (std::string_view line; lines.Next(line) && line.starts_with("cpu");) {
    Times now;
    if (!Parse(line, now)) continue;
    if (line[3] == ' ') {
      ReadTotal(now, t_ns, sink);
      if (!per_core_ || !slow) break;
    } else if (const auto index = ParseInt(line.substr(3, line.find(' ') - 3))) {
      ReadCore(*index, now, t_ns, sink);
    }
  }
  if (!slow) return;
  last_slow_ns_ = t_ns;
  ReadLoad(t_ns, sink);
}

void CpuProbe::ReadTotal(const Times& now, int64_t t_ns, Sink& sink) {
  const Times before = total_;
  // The kernel's iowait and idle counters can step back a little; a sum that does
  // not grow is not an interval.
  const uint64_t user = Grown(before.user, now.user);
  const uint64_t system = Grown(before.system, now.system);
  const uint64_t iowait = Grown(before.iowait, now.iowait);
  const uint64_t steal = Grown(before.steal, now.steal);
  const uint64_t total = user + system + iowait + steal + Grown(before.idle, now.idle);
  total_ = now;
  if (!std::exchange(total_known_, true) || total == 0) return;
  const auto ratio = [total](uint64_t part) {
    return static_cast<double>(part) / static_cast<double>(total);
  };
  sink.Read(utilization_, t_ns, ratio(user + system));
  sink.Read(user_, t_ns, ratio(user));
  sink.Read(system_, t_ns, ratio(system));
  sink.Read(iowait_, t_ns, ratio(iowait));
  sink.Read(steal_, t_ns, ratio(steal));
}

void CpuProbe::ReadCore(int64_t index, const Times& now, int64_t t_ns, Sink& sink) {
  if (index < 0 || index > 4 * kMaxCoreSeries) return;
  while (static_cast<size_t>(index) >= cores_.size()) {
    cores_.push_back(
        {KeyOf(Metric::kCpuCoreUtilization, {{"cpu", std::to_string(cores_.size())}}), {}, false});
  }
  Core& core = cores_[static_cast<size_t>(index)];
  const uint64_t busy = Grown(core.last.user, now.user) + Grown(core.last.system, now.system);
  const uint64_t total = busy + Grown(core.last.idle, now.idle) + Grown(core.last.iowait, now.iowait) +
                         Grown(core.last.steal, now.steal);
  core.last = now;
  if (!std::exchange(core.known, true) || total == 0) return;
  sink.Read(core.utilization, t_ns, static_cast<double>(busy) / static_cast<double>(total));
}

void CpuProbe::ReadLoad(int64_t t_ns, Sink& sink) {
  const auto text = loadavg_.Read();
  if (!text) return;
  WordCursor words(*text);  // "0.13 0.07 0.07 1/89 7590"
  const auto load1 = ParseDouble(words.Next());
  const auto load5 = ParseDouble(words.Next());
  if (load1 && load5) sink.Read(load1_, t_ns, *load1);
}

}  // namespace fullbore::probe
