// What to do with an answer: the command to run or the lines to change, what else that may change besides the
// time, and what it saves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/search/search.h"

namespace fullbore::tune {

// What else is known when an answer is shown.
struct AnswerContext {
  std::vector<std::string> command;  // with placeholders
  Known known;
  std::string patch;                 // a unified diff; may be empty
  std::vector<std::string> by_hand;  // what is left to the user: the setting, the place, and why
  std::optional<double> price_per_hour;
  std::vector<std::string> held;  // knobs that were not turned because they change training results
  std::string resume;             // the command that resumes it, if it was interrupted; may be empty
  std::string unlike_the_run;  // how a trial of the script as it is differs from the run itself; may be empty
  std::string reason;  // why nothing could be measured, or why it ended before all was tried; else empty
};

struct Advice {
  struct Line {
    std::string code;   // "DataLoader(num_workers=4)"
    std::string where;  // "/home/u/train.py:57"; may be empty
  };
  std::string command;               // with the settings that have a place in it; empty if none has
  std::vector<Line> lines;           // of the script, for the other settings
  std::vector<std::string> changes;  // of training results, a sentence a setting
  std::string without_edit;          // "fullbore tune --apply RUN -- CMD"
};

// How to adopt the recommendation (there has to be one). Secrets in the command are masked.
Advice AdviceOf(const Answer& answer, const AnswerContext& context);

// The grounds of the answer, a sentence each: what is recommended and proven, what was refuted, and what is not proven
// and what would settle it.
std::vector<std::string> Grounds(const Answer& answer);

// How the recommended settings may change training results, a sentence for each that differs; empty if
// nothing but the time.
std::vector<std::string> ChangesOfResults(const Answer& answer);

// What a larger batch adds to the recommendation, a sentence each; empty if that was not measured.
std::vector<std::string> OfLargerBatches(const Answer& answer);

// The command as a shell line, with its placeholders filled and its secrets masked.
std::string CommandText(const std::vector<std::string>& command, const Settings& settings);

struct EpochCost {
  int64_t samples;
  double before, after;  // in the currency of the price
};
// Nothing if the price, the samples of an epoch or the rate in samples are unknown.
std::optional<EpochCost> CostOfAnEpoch(const Answer& answer, const AnswerContext& context);

// "631 ±8"
std::string RateText(const Rate& rate);

}  // namespace fullbore::tune
