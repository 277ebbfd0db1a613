// A run as its pages show it, and the last few of those kept: reading and judging one takes up to a second.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "base/result.h"
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
  } curve;
};

class ShownRuns {
 public:
  using Explain = std::function<Result<report::Explained>(const std::string& path)>;
  explicit ShownRuns(Explain explain) : explain_(std::move(explain)) {}

  // A live run is read again only after a pause in proportion to what that took, so that a page that is open on it
  // costs less than a hundredth of a core. Valid until the next call.
  Result<std::shared_ptr<const ShownRun>> Get(const std::string& name, const watch::KnownRun& run,
                                              int64_t now_ns);

 private:
  struct Kept {
    std::shared_ptr<const ShownRun> run;
    int64_t fresh_until_ns = 0;
  };

  Explain explain_;
  std::list<Kept> kept_;  // last used first
};

}  // namespace fullbore::serve
