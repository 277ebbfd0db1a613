// What forward passes are for that are not the training's own: of modules in evaluation mode, or without gradients.
//
//   validation   the model that the optimizer trains (or an averaged copy of it), in evaluation mode, in a stretch
//                without a training pass: over batches of a loader of its own or of a loader begun anew; or over other
//                data, seldom, with nothing between the passes, and in no program that plays in an environment
//   frozen       a module that no optimizer holds, in most steps: a teacher, a target, a frozen backbone. Part of the
//                training, like any pass whose gradients are computed
//   unknown      all else: a policy that acts, a model that is its own teacher, text that is generated
//
// A stretch is what lies between two training passes of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "record/channel.h"

namespace fullbore::timeline {

enum class PassFor : uint8_t { kTraining, kFrozen, kValidation, kUnknown };

// Whether the event is a forward or backward pass of the training.
bool IsTraining(const record::ChannelRecord& event);

class Passes {
 public:
  // What each event of a step is for: a forward pass, or `next` of a loader that does not feed the training. Those of
  // other kinds count as training. `events` are one thread's, by begin.
  std::vector<PassFor> Of(const std::vector<record::ChannelRecord>& events,
                          const std::set<uint16_t>& training_loaders);

  // Times of all steps so far.
  struct Totals {
    int64_t forward_ns = 0;      // passes with gradients; of that:
    int64_t apart_ns = 0;        //   of modules that no optimizer holds
    int64_t apart_first_ns = 0;  //   of these, before the step's first pass of a trained module
    int64_t frozen_ns = 0;       // passes of frozen modules without gradients
  };
  const Totals& totals() const { return totals_; }

  // Of all validations so far that are long enough to tell whether what follows their passes grows.
  struct Validations {
    int64_t count = 0;
    int64_t ns = 0;          // from the first pass to the last one
    int64_t between_ns = 0;  // of that, after a pass and before the next one or its batch
    int64_t growing_ns = 0;  // of that, what it took more than at the beginning of its validation
    int64_t after_ns = 0;    // not of that: after the last pass, until the training goes on
  };
  const Validations& validations() const { return validations_; }

 private:
  struct Stretch {
    std::vector<size_t> batches, passes;  // places in `events`
  };
  bool IsSeldom() const { return 2 * steps_evaluating_ <= steps_; }
  bool PlaysInEnvironment() const;
  bool Validates(const Stretch& stretch, const std::vector<record::ChannelRecord>& events,
                 const std::set<uint16_t>& training_loaders);
  void Name(const Stretch& stretch, const std::vector<record::ChannelRecord>& events,
            const std::set<uint16_t>& training_loaders, std::vector<PassFor>& named);
  void AddValidation(const Stretch& stretch, const std::vector<record::ChannelRecord>& events);
  void AddUp(const std::vector<record::ChannelRecord>& events, const std::vector<PassFor>& named);

  int64_t steps_ = 0;
  int64_t steps_evaluating_ = 0;             // with a trained model in evaluation mode that no loader feeds
  int64_t steps_frozen_ = 0;                 // with a pass of a module apart, without gradients
  bool evaluates_ = false, frozen_ = false;  // the step that is looked at
  int64_t samples_between_ = 0, samples_in_environment_ = 0;  // of the line sampler, outside all phases
  Totals totals_;
  Validations validations_;
};

}  // namespace fullbore::timeline
