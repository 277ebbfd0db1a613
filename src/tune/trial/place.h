// Where trials run: on this machine, or as the jobs of a cluster.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tune/trial/measure.h"
#include "tune/trial/say.h"

namespace fullbore::tune {

struct Cluster {
  std::string partition;     // empty: its own default
  int jobs = 4;              // at most so many of ours at a time
  bool unprotected = false;  // also on nodes where nothing keeps a trial's hands off the user's files
};

struct Place {
  std::optional<Cluster> cluster;  // nothing: here
  Say say;                         // what happens to jobs
};

// Several trials as jobs; `measured` receives each as soon as it is known. The signal that asked this process to end, if
// one did; jobs that had not ended then are cancelled, as where options.given_up says so. Not where there is no cluster.
Result<std::optional<int>> MeasureOnCluster(const Place& place, const MeasureOptions& options,
                                            const std::vector<Settings>& settings,
                                            const std::function<void(size_t, const Trial&)>& measured);

// Measures one trial there. Of one made elsewhere, `hopeless_below` is not looked at.
Result<Measured> MeasureAt(const Place& place, const MeasureOptions& options, const Settings& settings);

}  // namespace fullbore::tune
