// What may be concluded from a recording: asked once, before any finding. A recording may be incomplete, too short, cold
// or noisy. Each such condition says so in one sentence with its number, what it forbids to conclude, and what recording
// would mend it. One that forbids everything is the verdict: the recording cannot be judged.
//
//   const fitness::Fitness fitness = fitness::FitnessOf(known);
//   if (fitness.Forbids(fitness::Conclusion::kGains)) ...
//
// Pure: counts that readers noticed (record/noticed.h) and figures of the steps go in, conditions come out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/noticed.h"

namespace fullbore::fitness {

enum class Conclusion : uint8_t {
  kAnything,     // about the steps: none of what follows, except rates
  kGains,        // what a change would gain: no prediction, no ladder
  kWhatIf,       // the same where somebody asks for a change, other than another device
  kSmallGains,   // gains that the noise could have made
  kIdleTime,     // why the device idles
  kHealthy,      // that nothing is wrong
  kRates,        // steps a second
  kOfTheDevice,  // how near the device's work comes to what it could do
};
std::string_view Name(Conclusion conclusion);  // "gains", as in reports

struct Condition {
  std::string id;    // "launches-without-kernels"
  std::string says;  // one sentence with its number
  double number = 0;
  std::string unit;  // "ratio", "count", "bytes", "ns", "steps"
  std::vector<Conclusion> forbids;
  std::string mend;  // the next step, a sentence; may be empty

  bool Forbids(Conclusion conclusion) const;  // by name
};

struct Fitness {
  std::vector<Condition> conditions;  // the one that forbids everything first

  bool Forbids(Conclusion conclusion) const;
  bool CanBeJudged() const { return !Forbids(Conclusion::kAnything); }
  // The first condition that forbids it, or null.
  const Condition* WhyNot(Conclusion conclusion) const;
  // "This recording cannot be judged: ... Record ..."; empty where it can be.
  std::string Refusal() const;
};

// How far the figures of a run can be trusted, apart from what is missing in it.
struct Doubt {
  // Half of the 95 % interval of the mean step time, as a ratio of it; 0 where too few steps were seen to tell. Of
  // shares that were sampled, theirs.
  double of_mean_step = 0;
  bool sampled = false;
  // Cores that other programs keep busy while none is idle; nothing if they leave enough, or if not known.
  std::optional<double> contended_cores;
  double cores = 0;  // that the command may use
};

// The rank whose steps are judged, and its steady state. Unknown is absent, or 0.
struct Known {
  record::Noticed noticed;
  bool live = false;    // recorded by `fullbore run`: its first seconds say little of the hours that follow
  bool device = false;  // operations of a device were recorded
  int64_t events = 0;   // read, of any kind
  int64_t operations = 0;            // of the device
  int64_t kernels = 0;               // of these
  bool shapes = false;               // the work of some operators is known: a few kernels can be judged by it
  int64_t steps = 0;                 // of the steady state
  int64_t wall_ns = 0;               // their time
  int64_t warmup_ns = 0;             // before them
  int64_t missed_ns = 0;             // beside them: events of the process were lost, and with them its steps
  int64_t bare_steps = 0;            // of the steady state, left out since launches in them ran nothing
  std::optional<double> work_known;  // of the device's time in the steps: the part whose work is known
  // What a step would take without the profiler, estimated, in ns; where it is known, `noticed.slowed` is there.
  struct Unwatched {
    double recorded_ns = 0, least_ns = 0, expected_ns = 0, most_ns = 0;
  };
  std::optional<Unwatched> unwatched;
  Doubt doubt;
};

Fitness FitnessOf(const Known& known);

// Of several ranks: what limits any of them limits what is said of all, but only the first one's steps are judged.
void AddRank(int rank, const Known& known, Fitness& fitness);

}  // namespace fullbore::fitness
