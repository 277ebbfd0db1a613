#include "tune/search/machine.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/text.h"
#include "record/run_reader.h"
#include "tune/search/known.h"

namespace fullbore::tune {

Machine::Machine(Place place, MeasureOptions options, double budget_s, Kept& kept)
    : place_(std::move(place)),
      options_(std::move(options)),
      budget_(budget_s),
      turns_(budget_, !place_.cluster && options_.metric.empty(), place_.say),
      kept_(kept) {}

void Machine::Announce(const Request& request, double most_s) {
  place_.say(fmt::format(
      "trial {}: {} ({}){}, at most {}; {} left", ++count_, ToText(request.settings), request.why,
      request.predicted ? fmt::format(", predicted {}", FormatCount(*request.predicted)) : std::string(),
      FormatDuration(static_cast<int64_t>(most_s * 1e9)),
      FormatDuration(static_cast<int64_t>(budget_.left_s() * 1e9))));
}

Trial Machine::Try(const Request& request) {
  if (auto before = kept_.Take(request.settings, request.proves)) return *before;
  MeasureOptions options = options_;
  options.hopeless_below = request.hopeless_below;
  budget_.Limit(options);
  const bool is_job = place_.cluster.has_value();
  if (is_job) options.given_up = [this] { return IsOver(); };  // it knows nothing of our time
  Announce(request, options.precision.most_seconds);
  auto measured = MeasureAt(place_, options, request.settings);
  Trial trial;
  if (!measured) {
    error_ = measured.error();
    trial.outcome = Outcome::kCrashed;
    return trial;
  }
  trial = std::move(measured->trial);
  if (measured->interrupted_by) budget_.NoteInterrupt(*measured->interrupted_by);
  if (interrupted()) {
    trial.outcome = Outcome::kEndedEarly;
    trial.rate.reset();
    trial.why.clear();
    return trial;
  }
  trial.settings = request.settings;
  trial.predicted = request.predicted;
  trial.proves = request.proves;
  const bool job_was_cut_off = is_job && budget_.IsOver() && trial.run.empty();
  if (job_was_cut_off) {
    trial.outcome = Outcome::kEndedEarly;
    trial.why = budget_.text() + " ended before the job did";
  }
  if (!trial.ok() && (measured->out_of_time || job_was_cut_off))
    trial.why += "; a longer --budget gives it more time";
  if (trial.ok() || !budget_.IsOver())
    Keep({trial});
  else
    Tell(trial);  // with more time, --resume shall try it again
  return trial;
}

std::string Machine::Reason(const Answer& answer) const {
  const std::string what = interrupted() ? "it was interrupted" : budget_.text() + " ended";
  if (answer.recommended) return answer.ended_early ? what + " before everything was tried and proven" : "";
  if (!answer.trials.empty() && !answer.trials.front().why.empty()) return answer.trials.front().why;
  return what + " before the script as it is was measured";
}

void Machine::Tell(const Trial& trial) const {
  place_.say(fmt::format("  {}{}",
                         trial.rate ? fmt::format("{} {}", FormatCount(trial.rate->mean), trial.unit)
                                    : std::string(Name(trial.outcome)),
                         trial.why.empty() ? "" : ", " + trial.why));
}

void Machine::Keep(const std::vector<Trial>& trials) {
  for (const Trial& trial : trials) Tell(trial);
  if (auto added = kept_.Add(trials); !added) place_.say(added.error().text);
}

std::optional<PairOfTrials> Machine::TryPair(const Request& before, const Request& after) {
  const bool any_is_kept = kept_.Holds(before.settings, true) || kept_.Holds(after.settings, true);
  if (!turns_.possible() || any_is_kept) return std::nullopt;
  for (const Request* each : {&before, &after}) Announce(*each, options_.precision.most_seconds);
  auto turns =
      turns_.Take({options_, before.settings, before.memory}, {options_, after.settings, after.memory});
  if (!turns) error_ = turns.error();
  if (!turns || !turns->pair) {
    count_ -= 2;
    return std::nullopt;
  }
  for (Trial* each : {&turns->pair->before, &turns->pair->after}) each->proves = true;
  Keep({turns->pair->before, turns->pair->after});
  return std::move(turns->pair);
}

std::vector<Trial> Machine::TryAll(const std::vector<Request>& requests) {
  if (!place_.cluster) return Laboratory::TryAll(requests);
  std::vector<std::optional<Trial>> trials;
  std::vector<Settings> open;
  std::vector<size_t> place;  // of each that is open, among the requests
  MeasureOptions options = options_;
  options.given_up = [this] { return IsOver(); };
  for (const Request& request : requests) {
    trials.push_back(kept_.Take(request.settings, request.proves));
    if (trials.back()) continue;
    Announce(request, options.precision.most_seconds);
    place.push_back(trials.size() - 1);
    open.push_back(request.settings);
  }
  const auto ended = MeasureOnCluster(place_, options, open, [&](size_t i, const Trial& trial) {
    trials[place[i]] = trial;
    Keep({trial});
  });
  if (!ended)
    error_ = ended.error();
  else if (*ended)
    budget_.NoteInterrupt(**ended);
  std::vector<Trial> known;
  for (std::optional<Trial>& trial : trials) {
    if (trial) known.push_back(std::move(*trial));
  }
  return known;
}

std::optional<Known> Machine::Learn(const Trial& trial) {
  const auto file = std::filesystem::path(options_.directory) / (trial.run + std::string(record::kRunSuffix));
  const auto recording = record::ReadRun(file);
  if (!recording) return std::nullopt;
  return KnownFrom(*recording);
}

}  // namespace fullbore::tune
