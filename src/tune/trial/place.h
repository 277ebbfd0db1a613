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
  std::string partition;     // empty: the cluster's default
  int jobs = 4;              // at most so many of ours at a time
  bool unprotected = false;  // also on nodes where nothing protects the user's files
};

struct Place {
  std::optional<Cluster> cluster;  // nothing: here
  Say say;                         // what happens to jobs
};

// Several trials as jobs; `measured` receives each as soon as it is known. Returns the signal that asked this process
// to end, if any; unfinished jobs are then cancelled, as they are when options.given_up says so. Only with a cluster.
Result<std::optional<int>> MeasureOnCluster(const Place& place, const MeasureOptions& options,
                                            const std::vector<Settings>& settings,
                                            const std::function<void(size_t, const Trial&)>& measured);

// Measures one trial there. On a cluster, `hopeless_below` is ignored.
Result<Measured> MeasureAt(const Place& place, const MeasureOptions& options, const Settings& settings);

}  // namespace fullbore::tune
