// Host CPU from /proc/stat and /proc/loadavg: where the time of all cores went, and each core's.
#pragma once

#include <array>
#include <vector>

#include "measure/probe/probe.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

// With more cores than this, only the sum is recorded: a series per core would be most of the run file.
inline constexpr int kMaxCoreSeries = 32;

class CpuProbe : public Probe {
 public:
  explicit CpuProbe(const Machine& machine);

  std::string_view name() const override { return "cpu"; }
  Rate rate() const override { return rate_; }
  void Sample(int64_t t_ns, Sink& sink) override;

 private:
  // Ticks of a core or of all, as /proc/stat counts them; guest time is already inside user time.
  struct Times {
    uint64_t user = 0, system = 0, idle = 0, iowait = 0, steal = 0;
    uint64_t total() const { return user + system + idle + iowait + steal; }
  };
  struct Core {
    record::SeriesKey utilization;
    Times last;
    bool known = false;
  };

  static bool Parse(std::string_view line, Times& times);
  void ReadTotal(const Times& now, int64_t t_ns, Sink& sink);
  void ReadCore(int64_t index, const Times& now, int64_t t_ns, Sink& sink);
  void ReadLoad(int64_t t_ns, Sink& sink);

  TextFile stat_;
  TextFile loadavg_;
  Rate rate_ = Rate::kFast;
  bool per_core_ = true;
  int64_t last_slow_ns_ = 0;
  bool total_known_ = false;
  Times total_;
  std::vector<Core> cores_;
  const record::SeriesKey utilization_, user_, system_, iowait_, steal_, load1_;
};

}  // namespace fullbore::probe
