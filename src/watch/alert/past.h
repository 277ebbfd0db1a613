// What rules need to know about a run beyond its last minute: how fast it was, how long its pauses are, and how its
// memory and disks fill up. Bounded, however long the run.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/recording.h"

namespace fullbore::watch {

// Steps of the lead rank in a stretch of time. Validation and checkpoints are not part of `working_ns`: a run is not
// slower for them.
struct Pace {
  int64_t end_ns = 0;
  int64_t steps = 0, samples = 0;
  int64_t working_ns = 0, longest_ns = 0;
};

// How much of something limited is in use: memory below a limit, a disk.
struct Filling {
  std::string what;  // "memory of the machine", "disk of /data"
  bool is_disk = false;
  double size = 0;                   // bytes
  std::deque<record::Reading> used;  // bytes, of the last ten minutes
};

class Past {
 public:
  // Takes from the stage what was recorded up to `now_ns` and was not taken before. Times only go forward.
  void Take(const record::Stage& stage, int64_t now_ns);

  const std::vector<Pace>& paces() const { return paces_; }  // one for each stretch of steps, in order
  const std::map<std::string, Filling>& fillings() const { return fillings_; }
  int64_t last_step_ns() const {
    return last_step_ns_;
  }  // when the last step of any rank ended; 0 without one
  int64_t first_step_ns() const { return paces_.empty() ? 0 : paces_.front().end_ns; }
  int64_t steps() const { return steps_; }  // of the lead rank
  bool samples_known() const { return samples_known_; }

 private:
  void TakeSteps(const record::Stage& stage, int64_t now_ns);
  void TakeFillings(const record::Stage& stage, int64_t now_ns);

  std::vector<Pace> paces_;
  std::map<std::string, Filling> fillings_;
  int64_t taken_ns_ = 0, last_step_ns_ = 0, steps_ = 0;
  bool samples_known_ = false;
};

}  // namespace fullbore::watch
