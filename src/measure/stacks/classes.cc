#include "measure/stacks/classes.h"

#include <algorithm>
#include <optional>

namespace fullbore::stacks {

using record::Activity;
using record::HostOther;
using record::Share;

namespace {

bool IsPass(const Phase& phase) {
  return phase.share == Share::kForward || phase.share == Share::kBackward ||
         phase.share == Share::kOptimizer;
}

// These happen within passes, and are not theirs.
bool IsWithinPasses(const Phase& phase) {
  return phase.share == Share::kCommExposed || phase.share == Share::kSync ||
         phase.part == HostOther::kCompilation;
}

// A library that calls the user's code is what that code is for, except for those that only wrap a loop or a call.
bool HoldsAcrossUserCode(Activity activity) {
  return activity == Activity::kMetrics || activity == Activity::kEnvironment ||
         activity == Activity::kDataPreparation || activity == Activity::kTokenising;
}

bool IsNotData(Activity activity) {
  return activity == Activity::kLogging || activity == Activity::kPlotting ||
         activity == Activity::kMetrics || activity == Activity::kEnvironment;
}

std::string PackageOf(const Frame& frame) { return frame.module.substr(0, frame.module.find('.')); }

}  // namespace

TrainingLoop::TrainingLoop(const Profile& profile, const Thread& thread, Sources& sources, bool on_device)
    : profile_(profile), sources_(sources), on_device_(on_device) {
  LearnNames(thread);
  for (const Stack& stack : thread.samples) {
    const auto found = PhaseIn(stack);
    if (!found || !IsPass(found->phase)) continue;
    ++passes_;
    Learn(stack, *found);
  }
}

// A name like evaluate() only suffices where the training goes on elsewhere: an actor's evaluate(states, actions) is the
// forward pass that its update trains on.
void TrainingLoop::LearnNames(const Thread& thread) {
  const auto visit = [&](auto on_pass) {
    for (const Stack& stack : thread.samples) {
      std::vector<const Frame*> named;
      for (const uint32_t index : stack) {
        const Frame& frame = At(index);
        if (frame.is_user && NamedByUser(frame)) named.push_back(&frame);
        const auto phase = frame.is_user ? std::nullopt : table_.PhaseOf(frame.module, frame.function);
        if (!phase || !IsPass(*phase)) continue;
        on_pass(phase->share, named);
        break;
      }
    }
  };
  bool steps = false, forward_outside = false;
  visit([&](Share share, const std::vector<const Frame*>& named) {
    if (share == Share::kForward) return;
    steps = true;
    for (const Frame* frame : named) train_within_.insert(CodeOf(*frame));
  });
  visit([&](Share share, const std::vector<const Frame*>& named) {
    forward_outside |= share == Share::kForward && named.empty();
  });
  passes_outside_ = forward_outside || !steps;
}

std::optional<Phase> TrainingLoop::NamedByUser(const Frame& frame) const {
  if (!passes_outside_ || train_within_.contains(CodeOf(frame))) return std::nullopt;
  return table_.PhaseOfUserFunction(frame.function);
}

std::optional<TrainingLoop::Found> TrainingLoop::PhaseIn(const Stack& stack) const {
  std::optional<Found> found;
  for (size_t depth = 0; depth < stack.size(); ++depth) {
    const Frame& frame = At(stack[depth]);
    const auto phase = frame.is_user ? NamedByUser(frame) : table_.PhaseOf(frame.module, frame.function);
    if (!phase) continue;
    const bool closure = found && found->phase.share == Share::kOptimizer && IsPass(*phase);
    const bool within = found && IsPass(found->phase) && IsWithinPasses(*phase);
    if (!found || closure || within) found = Found{*phase, depth};
  }
  return found;
}

void TrainingLoop::Learn(const Stack& stack, const Found& found) {
  const Frame* user = nullptr;
  for (size_t depth = 0; depth < found.depth; ++depth) {
    const Frame& frame = At(stack[depth]);
    Lines& lines = loop_[CodeOf(frame)];
    lines.all.insert(frame.line);
    if (found.phase.share == Share::kForward && (lines.forward == 0 || frame.line < lines.forward))
      lines.forward = frame.line;
    if (found.phase.share == Share::kBackward) lines.backward = std::max(lines.backward, frame.line);
    if (frame.is_user) user = &frame;
  }
  if (user != nullptr) user_lines_.insert({user->file, user->line});
}

size_t TrainingLoop::LoopDepth(const Stack& stack) const {
  for (size_t depth = stack.size(); depth > 0; --depth) {
    if (loop_.contains(CodeOf(At(stack[depth - 1])))) return depth;
  }
  return 0;
}

// Whether the loop asks its iterator for the next item: at the head of the `for` whose body has a pass, or in next().
bool TrainingLoop::Advances(const Frame& loop) const {
  const std::string_view text = sources_.Line(loop.file, loop.line);
  if (text.find("next(") != std::string_view::npos) return true;
  if (!text.starts_with("for ") && !text.starts_with("async for ")) return false;
  const auto lines = loop_.find(CodeOf(loop));
  return lines != loop_.end() && lines->second.all.upper_bound(loop.line) != lines->second.all.end();
}

std::optional<Phase> TrainingLoop::PhaseCalledBy(const Frame& frame) const {
  for (const std::string& call : sources_.CallsIn(frame.file, frame.line)) {
    const size_t dot = call.rfind('.');
    if (dot == 0 && !on_device_) continue;  // they move data, or wait for it: here it lies in memory already
    const auto phase = dot == 0 ? table_.PhaseOfMethod(call.substr(1))
                                : table_.PhaseOf(call.substr(0, dot), call.substr(dot + 1));
    if (phase) return phase;
  }
  return std::nullopt;
}

// What the line calls, of several calls the first that the table knows: a C function has no frame of its own.
std::pair<Activity, bool> TrainingLoop::CalledBy(const Frame& frame) const {
  Activity python = Activity::kUnknown;
  for (const std::string& call : sources_.CallsIn(frame.file, frame.line)) {
    const Activity activity =
        call.starts_with('.') ? table_.ActivityOfMethod(call.substr(1)) : table_.CallOf(call);
    if (activity == Activity::kPython && call != "builtins.next") python = activity;
    if (activity != Activity::kUnknown && activity != Activity::kPython)
      return {activity, activity == Activity::kQueue};
  }
  return {python, false};
}

// Whether it runs a method of a class that one steps and resets, as those of gym, gymnasium and dm_env.
bool TrainingLoop::IsEnvironment(const Frame& frame) const {
  return (frame.function == "step" || frame.function == "reset") &&
         sources_.ClassHas(frame.file, frame.line, {"step", "reset"});
}

// What the loop's callees do, and whether they wait to receive something from elsewhere.
std::pair<Activity, bool> TrainingLoop::ActivityOf(const Stack& stack, size_t loop_depth) const {
  Activity purpose = Activity::kUnknown;
  Wait wait;
  const Frame* caller = nullptr;  // the user's innermost frame
  for (size_t depth = stack.size(); depth > loop_depth; --depth) {
    const Frame& frame = At(stack[depth - 1]);
    if (frame.is_user) {
      if (caller == nullptr) caller = &frame;
      if (purpose == Activity::kUnknown && IsEnvironment(frame)) purpose = Activity::kEnvironment;
      continue;
    }
    const Activity of_module = table_.PurposeOf(frame.module);
    if (of_module != Activity::kUnknown) {
      // A progress bar is an iterator around the one that works.
      const bool bar = of_module == Activity::kLogging && frame.function == "__iter__" &&
                       (purpose != Activity::kUnknown || wait.activity != Activity::kUnknown);
      if ((caller == nullptr && !bar) || (purpose == Activity::kUnknown && HoldsAcrossUserCode(of_module)))
        purpose = of_module;
    }
    if (caller != nullptr) continue;
    if (const auto found = table_.WaitOf(frame.module, frame.function)) wait = *found;
  }
  if (purpose != Activity::kUnknown) return {purpose, false};
  if (wait.activity != Activity::kUnknown) return {wait.activity, wait.receives};
  if (caller == nullptr && loop_depth > 0) caller = &At(stack[loop_depth - 1]);
  return caller == nullptr ? std::pair(Activity::kUnknown, false) : CalledBy(*caller);
}

void TrainingLoop::Place(const Stack& stack, size_t loop_depth, Seen& seen) const {
  for (const uint32_t index : stack) {
    if (At(index).is_user) seen.where = &At(index);
  }
  if (seen.where == nullptr || loop_depth == 0 || !user_lines_.contains({seen.where->file, seen.where->line}))
    return;
  const Frame& loop = At(stack[loop_depth - 1]);
  const std::string package = PackageOf(loop);
  if (loop.is_user || package == "torch" || package == "fullbore" ||
      loop.file.find("-packages/") == std::string::npos)
    return;
  for (const uint32_t index : stack) {
    if (PackageOf(At(index)) == package) seen.where = &At(index);
  }
  seen.library = package;
}

// Outside all passes.
Seen TrainingLoop::ReadBetween(const Stack& stack) const {
  Seen seen;
  const size_t loop_depth = LoopDepth(stack);
  const Frame& innermost = At(stack.back());
  if (innermost.is_user) {
    if (const auto phase = PhaseCalledBy(innermost)) {
      seen.phase = *phase;
      Place(stack, loop_depth, seen);
      return seen;
    }
  }
  const auto [activity, receives] = ActivityOf(stack, loop_depth);
  seen.activity = activity;
  Place(stack, loop_depth, seen);
  if (loop_depth == 0) return seen;
  const Frame& loop = At(stack[loop_depth - 1]);
  if (!IsNotData(activity) && Advances(loop)) {
    seen.phase.share = Share::kDataWait;
    seen.in_iterator = true;
  } else if (receives) {
    seen.phase.share = Share::kDataWait;
  } else if (activity == Activity::kUnknown) {
    // Between the forward and the backward pass the loss is computed.
    const Lines& lines = loop_.at(CodeOf(loop));
    if (lines.forward > 0 && loop.line >= lines.forward && loop.line <= lines.backward)
      seen.phase.share = Share::kForward;
  }
  return seen;
}

Seen TrainingLoop::Read(const Stack& stack) const {
  const auto found = PhaseIn(stack);
  if (!found) return ReadBetween(stack);
  Seen seen;
  seen.phase = found->phase;
  Place(stack, found->depth, seen);
  return seen;
}

}  // namespace fullbore::stacks
