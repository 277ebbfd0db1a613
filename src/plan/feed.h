// A recorded loader that feeds other devices on other cores: how many workers it takes, what a step then takes, and
// whether the loader sets the pace.
#pragma once

#include <cstdint>

#include "explain/replay/predict.h"
#include "plan/cores.h"
#include "plan/recorded.h"

namespace fullbore::plan {

struct Fed {
  replay::Prediction step;  // of each device
  int64_t workers = 0;      // of each
  double waits = 0;         // of the step, for data
  bool cores_bind = false;  // it waits since all cores are busy
};

// `consume`: a step of each of `gpus` devices that never waits for data. With the number of workers that serves best, up
// to one for each core, or the recorded one where no other is better. `recorded` has a loader.
Fed Feed(const Recorded& recorded, const replay::Prediction& consume, int64_t gpus, const Cores& cores);

// The cores that keep such devices fed, and all that the loader delivers on these cores, samples a second, while nothing
// else runs there.
double CoresToFeed(const Recorded& recorded, double consume_ns, int64_t gpus, const Cores& kind);
Range LoaderAlone(const Recorded& recorded, const Cores& cores);

}  // namespace fullbore::plan
