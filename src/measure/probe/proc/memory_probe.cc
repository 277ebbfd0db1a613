#include "measure/probe/proc/memory_probe.h"

#include <unistd.h>

namespace fullbore::probe {

namespace {

constexpr double kKiB = 1024;

}  // namespace

MemoryProbe::MemoryProbe(const Machine& machine)
    : meminfo_(machine.root + "/proc/meminfo"),
      vmstat_(machine.root + "/proc/vmstat"),
      total_(KeyOf(Metric::kMemoryTotal)),
      used_(KeyOf(Metric::kMemoryUsed)),
      available_(KeyOf(Metric::kMemoryAvailable)),
      swap_used_(KeyOf(Metric::kSwapUsed)),
      swap_in_(KeyOf(Metric::kSwapIn)),
      swap_out_(KeyOf(Metric::kSwapOut)),
      major_faults_(KeyOf(Metric::kMajorFaults)),
      oom_kills_(KeyOf(Metric::kOomKills)) {}

void MemoryProbe::Sample(int64_t t_ns, Sink& sink) {
  ReadMeminfo(t_ns, sink);
  ReadVmstat(t_ns, sink);
}

void MemoryProbe::ReadMeminfo(int64_t t_ns, Sink& sink) {
  const auto text = meminfo_.Read();
  if (!text) return;
  std::optional<uint64_t> total, available, swap_total, swap_free;
  LineCursor lines(*text);
  for (std::string_view line; lines.Next(line);) {
    WordCursor words(line);
    const std::string_view key = words.Next();
    if (key == "MemTotal:") total = words.NextCount();
    if (key == "MemAvailable:") available = words.NextCount();
    if (key == "SwapTotal:") swap_total = words.NextCount();
    if (key == "SwapFree:") {
      swap_free = words.NextCount();
      break;  // the last of the four
    }
  }
  if (total) sink.Read(total_, t_ns, static_cast<double>(*total) * kKiB);
  if (available) sink.Read(available_, t_ns, static_cast<double>(*available) * kKiB);
  if (total && available && *available <= *total) {
    sink.Read(used_, t_ns, static_cast<double>(*total - *available) * kKiB);
  }
  if (swap_total && swap_free && *swap_free <= *swap_total) {
    sink.Read(swap_used_, t_ns, static_cast<double>(*swap_total - *swap_free) * kKiB);
  }
}

void MemoryProbe::ReadVmstat(int64_t t_ns, Sink& sink) {
  const auto text = vmstat_.Read();
  if (!text) return;
  static const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  LineCursor lines(*text);
  for (std::string_view line; lines.Next(line);) {
    // Nearly all of the 200 lines are irrelevant: check the first letter before splitting.
    if (line.empty() || (line[0] != 'p' && line[0] != 'o')) continue;
    WordCursor words(line);
    const std::string_view key = words.Next();
    const auto rate = [&](Counter& counter, const record::SeriesKey& series, double factor) {
      const std::optional<uint64_t> value = words.NextCount();
      if (!value) return;
      if (const auto per_second = counter.RatePerSecond(t_ns, *value))
        sink.Read(series, t_ns, *per_second * factor);
    };
    if (key == "pswpin") rate(swap_in_pages_, swap_in_, page_bytes);
    if (key == "pswpout") rate(swap_out_pages_, swap_out_, page_bytes);
    if (key == "pgmajfault") rate(major_faults_count_, major_faults_, 1);
    if (key == "oom_kill") {
      const std::optional<uint64_t> kills = words.NextCount();
      if (!kills) continue;
      if (!first_oom_kills_) first_oom_kills_ = kills;
      sink.Read(oom_kills_, t_ns, static_cast<double>(*kills - *first_oom_kills_));
    }
  }
}

}  // namespace fullbore::probe
