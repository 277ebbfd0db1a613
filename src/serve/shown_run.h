// A run as its pages show it, and the last few of those kept: reading and judging one takes up to a second, in a thread of
// its own, one run at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/side_thread.h"
#include "report/explained.h"
#include "watch/run_index.h"

namespace fullbore::serve {

struct ShownRun {
  std::string name;
  watch::FileStamp stamp;
  std::shared_ptr<const std::string> report;  // what `explain --json` writes
  std::shared_ptr<const std::string> page;    // what the page draws
  diagnose::Diagnosis verdict;
  struct Curve {  // of the first rank, by the number of the step
    std::string unit;
    std::vector<int64_t> step;
    std::vector<double> rate, step_ms;
    struct Logged {
      std::string name;
      std::vector<int64_t> step;
      std::vector<double> value;
    };
    std::vector<Logged> logged;  // by the script, by the number of the step as it counts them
  } curve;
};

class ShownRuns {
 public:
  using Shown = std::shared_ptr<const ShownRun>;
  using Explain = std::function<Result<report::Explained>(const std::string& path)>;
  // After so long a run is given up; Get() waits so long for one that it begins, and goes on without it then.
  static constexpr int64_t kLimitNs = 20'000'000'000, kWaitsNs = 30'000'000'000;
  explicit ShownRuns(Explain explain, int64_t waits_ns = kWaitsNs, int64_t limit_ns = kLimitNs)
      : explain_(std::move(explain)), waits_ns_(waits_ns), side_(limit_ns) {}

  // Null if it is not there yet: ask again. A live run is read again only after a pause in proportion to what that took, so that a page that is open on it
  // costs less than a hundredth of a core. Valid until the next call.
  Result<Shown> Get(const std::string& name, const watch::KnownRun& run, int64_t now_ns);

 private:
  struct Kept {
    std::shared_ptr<const ShownRun> run;
    int64_t fresh_until_ns = 0;
  };
  struct Failed {
    std::string name;
    watch::FileStamp stamp;
    Error error;
    int64_t until_ns = 0;
  };
  struct Making {
    std::string name;
    watch::FileStamp stamp;
    // Written by the thread until it has ended:
    std::shared_ptr<const ShownRun> run;
    std::optional<Error> error;
    int64_t cpu_ns = 0;
  };

  static void Make(const Explain& explain, const std::string& path, Making& making);
  void Take(int64_t now_ns, int64_t wait_ns);
  std::optional<Result<Shown>> Answer(const std::string& name, const watch::KnownRun& run, int64_t now_ns);

  Explain explain_;
  const int64_t waits_ns_;
  std::shared_ptr<Making> making_;
  SideThread side_;
  std::list<Failed> failed_;
  std::list<Kept> kept_;  // last used first
};

}  // namespace fullbore::serve
