// Of two trials that take turns (proof/turns.h), each has a process of its own, and a line to the one that gives the
// turns. A trial warms up, says that it is ready, and stands. Then each word lets it run for a slice of time, after which
// it says what it made in it, and stands again. It is over when the other end lets go.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "record/recording.h"

namespace fullbore::tune {

// What one trial made in one turn, in time in which it did not stand.
struct Slice {
  double seconds = 0;  // of one rank
  double steps = 0;    // a second
  double samples = 0;  // a second, of all ranks together; 0 where not all steps say theirs
};

// Adds up steps until they are a slice. Between two slices nothing is left out.
class SliceMeter {
 public:
  void Add(int rank, const record::Step& step);
  // Of what was added since the last one: nothing until it is long enough.
  std::optional<Slice> Take();

  double waited() const;  // for data, of the time of what was added since
  bool uses_device() const { return uses_device_; }

 private:
  struct Work {
    double samples = 0, seconds = 0, waited = 0;
    int64_t steps = 0;
    bool samples_known = true;
  };
  std::map<int, Work> ranks_;
  bool uses_device_ = false;
};

class TurnLine {
 public:
  // Both ends: the trial's, and the other one.
  static Result<std::pair<TurnLine, UniqueFd>> Make();

  void OnStep(int rank, const record::Step& step) { meter_.Add(rank, step); }
  // Whether the trial has to stand; `is_warm`: whether its throughput has become steady.
  bool Stands(bool is_warm);
  // It stands: only now the other one may run.
  void OnStood();
  int word() const { return fd_.get(); }  // can be read when it may run, or is over
  bool stands() const { return state_ == State::kStands; }
  bool IsOver();                                 // nobody gives turns any more
  void Say(const nlohmann::ordered_json& word);  // read by Turns

 private:
  enum class State : uint8_t { kWarmsUp, kStands, kRuns };

  explicit TurnLine(UniqueFd fd) : fd_(std::move(fd)) {}
  bool HasWord(int flags);  // of recv(2)

  UniqueFd fd_;
  State state_ = State::kWarmsUp;
  bool ran_ = false;  // in a turn
  bool is_over_ = false;
  SliceMeter meter_;
  std::optional<Slice> slice_;  // of the turn that is over
};

}  // namespace fullbore::tune
