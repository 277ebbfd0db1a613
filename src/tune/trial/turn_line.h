// Of two trials that take turns (proof/turns.h), each has a process of its own, and a line to the one that gives the
// turns. A trial warms up, says that it is ready, and stands. Then each word lets it run for a slice of time, after which
// it says what it made in it, and stands again. It is over when the other end lets go.
//
// A program that computes on the host does nothing while it stands. One that uses a device, or is blocked in waits for its
// data, may leave work to others that goes on meanwhile: kernels in the device's queue, a server that fills a socket. Its
// slices are longer, and do not begin before it has run for a moment, which uses that up. Which of the two it is, the words
// say.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/cores.h"
#include "base/fd.h"
#include "base/result.h"
#include "record/recording.h"

namespace fullbore::tune {

// What one trial made in one turn, in time in which it did not stand.
struct Slice {
  double seconds = 0;  // of one rank
  double steps = 0;    // a second
  double samples = 0;  // a second, of all ranks together; 0 where not all steps say theirs
  double waited = 0;   // for data, of that time
  double burst = 1;    // how many times as fast its first half was as its second
  double paused = 0;   // of that time: checkpoints, validation, collections of garbage, compilation
  // How many times as fast as all of it, but for the pauses, its undisturbed step was: one that met nothing else on the
  // machine, with waits for data and for ranks as they came.
  double undisturbed = 1;
};

// What a trial was before it ever stood, once that is steady.
struct Warm {
  double most_steps = 0;  // a second, at most: the high end of its interval
  double waited = 0;      // for data, of the time
  double blocked = 1;     // the training thread, of the time: it neither ran nor was ready to
  int64_t steps = 0;      // that it took to get there
};

// Adds up steps until they are a slice. Left out is the step during which the program stood, and of one of which something
// may have gone on what comes first. A slice has up to some steps more than it needs, by chance: what comes in every
// twentieth step would else be left out always, or never.
class SliceMeter {
 public:
  explicit SliceMeter(size_t most_more_steps = 2) : more_(0, most_more_steps) {}

  // What of a slice counts, and what goes before it and does not.
  struct Lengths {
    double lead_seconds;
    int64_t lead_steps;
    double seconds;
    size_t steps;
  };
  // `beside`: processes that compute for the rank besides its own.
  void Add(int rank, const record::Step& step, int64_t beside = 0);
  // Of what was added since the last one: nothing until it is long enough.
  std::optional<Slice> Take();
  // Forgets what was added: it was no part of a slice. `leaves_out`: the beginning of each slice.
  void BeginSlices(bool leaves_out);

  bool uses_device() const { return uses_device_; }
  // Of what was added: the training thread neither ran nor was ready to. 1 where that is not known.
  double blocked() const;

 private:
  struct Work {
    double lead_seconds = 0;  // of what is left out
    int64_t lead_steps = 0;
    double samples = 0, seconds = 0, waited = 0;
    double paused = 0, waited_for_any = 0;  // of the seconds; waited: for data or ranks
    double without_core = 0, on_core = 0, cpu = 0;
    std::vector<double> step_seconds;
    std::vector<double> regular;        // of each step, without pauses and waits
    std::vector<double> without_cores;  // of that, where it is known
    int64_t beside = 0;
    bool samples_known = true, cores_known = true;
  };
  const Lengths& lengths() const;
  bool Leads(Work& work, double seconds) const;
  // Whether all that could run had a core, but for others that took them.
  bool FitsTheCores() const;
  double UndisturbedOf(const Work& lead) const;

  int cores_ = UsableCores();
  std::map<int, Work> ranks_;
  bool uses_device_ = false;
  bool leaves_out_ = false;
  std::minstd_rand random_{std::random_device{}()};
  std::uniform_int_distribution<size_t> more_;
  std::optional<size_t> last_step_;  // of a slice that is long enough
};

// The words that let a trial run.
inline constexpr char kRun = 'r', kRunBeside = 'b';  // alone with the host, and beside what may go on

class TurnLine {
 public:
  // Both ends: the trial's, and the other one.
  static Result<std::pair<TurnLine, UniqueFd>> Make();

  void OnStep(int rank, const record::Step& step, int64_t beside = 0) { meter_.Add(rank, step, beside); }
  // Whether the trial has to stand.
  bool Stands(const std::optional<Warm>& warm);
  // It stands: only now the other one may run.
  void OnStood();
  int word() const { return fd_.get(); }  // can be read when it may run, or is over
  bool stands() const { return state_ == State::kStands; }
  bool IsOver();                                 // nobody gives turns any more
  void Say(const nlohmann::ordered_json& word);  // read by Turns

 private:
  enum class State : uint8_t { kWarmsUp, kStands, kRuns };

  explicit TurnLine(UniqueFd fd) : fd_(std::move(fd)) {}
  char Word(int flags);  // of recv(2); 0: none

  UniqueFd fd_;
  State state_ = State::kWarmsUp;
  Warm warm_;
  bool ran_ = false;  // in a turn
  bool is_over_ = false;
  SliceMeter meter_;
  std::optional<Slice> slice_;  // of the turn that is over
};

}  // namespace fullbore::tune
