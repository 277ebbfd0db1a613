// What each sample of a training thread's stack says: the share of the step, what is done, and in which line. The
// counterpart of python/fullbore/hook/sampling/stacks.py for stacks that are seen from without: there is no clock of
// phases beside them, only frames, and of a frame the line rather than the instruction.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "measure/stacks/activity_table.h"
#include "measure/stacks/profile.h"
#include "measure/stacks/source.h"

namespace fullbore::stacks {

struct Seen {
  Phase phase;
  record::Activity activity = record::Activity::kUnknown;
  bool in_iterator = false;      // of the training loop
  const Frame* where = nullptr;  // the user's innermost line, or a library's whose loop it is; null: none
  std::string library;
};

// The training loop, learned from all samples of its thread: the code around the passes.
class TrainingLoop {
 public:
  // `on_device`: whether its process uses a GPU.
  TrainingLoop(const Profile& profile, const Thread& thread, Sources& sources, bool on_device);

  bool trains() const { return passes_ > 0; }  // whether a pass was ever seen
  size_t passes() const { return passes_; }    // samples within one
  Seen Read(const Stack& stack) const;

 private:
  using Code = std::pair<std::string, std::string>;  // file and function
  struct Lines {
    std::set<int> all;              // from which a pass began
    int forward = 0, backward = 0;  // the first and the last of these; 0: none
  };
  const Frame& At(uint32_t frame) const { return profile_.frames[frame]; }
  static Code CodeOf(const Frame& frame) { return {frame.file, frame.function}; }

  struct Found {
    Phase phase;
    size_t depth;  // of its frame
  };
  std::optional<Found> PhaseIn(const Stack& stack) const;
  std::optional<Phase> NamedByUser(const Frame& frame) const;
  void LearnNames(const Thread& thread);
  void Learn(const Stack& stack, const Found& found);
  // How many frames, from the outermost, are the loop's; 0 where it is not on the stack.
  size_t LoopDepth(const Stack& stack) const;
  bool Advances(const Frame& loop) const;
  std::pair<record::Activity, bool> ActivityOf(const Stack& stack, size_t loop_depth) const;
  std::pair<record::Activity, bool> CalledBy(const Frame& frame) const;
  std::optional<Phase> PhaseCalledBy(const Frame& frame) const;
  Seen ReadBetween(const Stack& stack) const;
  void Place(const Stack& stack, size_t loop_depth, Seen& seen) const;

  bool IsEnvironment(const Frame& frame) const;

  const Profile& profile_;
  Sources& sources_;
  const bool on_device_;
  const ActivityTable& table_ = ActivityTable::Get();
  // The user's functions that are named like a validation, and within which the training steps.
  std::set<Code> train_within_;
  bool passes_outside_ = true;  // the training's forward pass was seen outside functions of such names
  std::map<Code, Lines> loop_;
  std::set<std::pair<std::string, int>> user_lines_;  // innermost lines of the user's, within a pass
  size_t passes_ = 0;
};

}  // namespace fullbore::stacks
