// Measures one setting: the command in a fresh process, recorded as an ordinary run, ended as soon as its throughput is
// known precisely enough, together with everything that it started.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tune/knob/settings.h"
#include "tune/trial/shelter.h"
#include "tune/trial/trial.h"
#include "tune/trial/turn_line.h"

namespace fullbore::tune {

// When a trial is finished: the half-width of the 95 % interval as a ratio of the rate, but not before so many steps
// and seconds of the steady state. At the latest `most_seconds` after the first step, it ends as "noisy".
struct Precision {
  double half_width = 0.02;
  int64_t least_steps = 20;
  double least_seconds = 2;
  double most_seconds = 60;
};

struct MeasureOptions {
  std::vector<std::string> command;  // with placeholders
  Precision precision;
  std::string metric;       // pattern for what the program prints; empty: the steps that the hook sees
  std::string log;          // the file to read it from; empty: the program's output
  double patience_s = 300;  // for the first step; after that, the program counts as hung
  // A trial whose interval lies below this rate, in samples/s, is ended: it cannot be the best.
  std::optional<double> hopeless_below;
  // The latest end, even before the first step, on the monotonic clock; 0: none. `end_of` names what is over then.
  int64_t end_ns = 0;
  std::string end_of = "its time";
  std::function<bool()> given_up;  // whether to end at once, asked a few times a second; may be empty
  // If it takes turns with another one: it then runs until that ends. Not with a metric. Not owned.
  TurnLine* turns = nullptr;
  // Steps of the warm-up, known from an earlier start of the same; nothing if they have to be found.
  std::optional<int64_t> warm_after;
  std::string directory;  // of runs
  Shelter shelter;        // of FindShelter(directory)
  std::string name;       // part of the run's id; from the command where empty
  std::map<std::string, std::string> tags;
  std::string hook_directory, package_directory;
};

struct Measured {
  Trial trial;
  std::string run_file;               // empty if nothing could be recorded
  std::optional<int> interrupted_by;  // by a signal to us: the trial tells nothing
  bool out_of_time = false;           // what is in end_of ended it
};

// What the program prints, and what it would write, goes into a directory that is removed at the end. An error if the
// command cannot be started at all.
Result<Measured> Measure(const MeasureOptions& options, const Settings& settings);

}  // namespace fullbore::tune
