#include "watch/track/sample.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "record/metrics.h"

namespace fullbore::watch {

namespace {

constexpr int64_t kBeginningNs = 120 * kNsPerSecond;
constexpr int64_t kShortNs = 2 * kNsPerSecond, kLongNs = 10 * kNsPerSecond;
constexpr size_t kMostSeries = 500;  // a machine of eight devices has about 200

// The stretch of the stage that a moment belongs to, by its end.
int64_t StretchEnd(int64_t begin_ns, int64_t t_ns) {
  const int64_t since_ns = std::max<int64_t>(1, t_ns - begin_ns);
  const int64_t length_ns = since_ns <= kBeginningNs ? kShortNs : kLongNs;
  return begin_ns + (since_ns + length_ns - 1) / length_ns * length_ns;
}

// Anything else in a file could be a name that spoils a whole message. A bit mask has no mean, and each core's load is
// for reports.
bool IsSent(const record::SeriesKey& key) {
  const auto all = record::AllMetrics();
  const auto info = std::ranges::find(all, key.name, &record::MetricInfo::name);
  return info != all.end() && info->metric != record::Metric::kLoggedStep && info->unit != "bitmask" &&
         !key.labels.contains("cpu");
}

// What the ranks' steps sum up to in one stretch.
struct Steps {
  struct OfRank {
    int64_t steps = 0, samples = 0, span_ns = 0;
    record::ShareTimes share_ns{};
  };
  std::map<int, OfRank> ranks;
  int64_t done = 0;  // by the first rank

  void Add(const record::RankInfo& rank, const record::StepWindow& window, bool is_first) {
    OfRank& of = ranks[rank.rank];
    of.steps += window.steps;
    if (rank.samples_known) of.samples += window.samples;
    of.span_ns += window.end_ns - window.begin_ns;
    for (size_t i = 0; i < record::kShareCount; ++i) of.share_ns[i] += window.share_ns[i];
    if (is_first) done = std::max(done, window.first_step + window.steps);
  }
};

void AddValue(std::vector<Value>& values, record::SeriesKey key, double value) {
  if (std::isfinite(value)) values.push_back({std::move(key), value});
}

// Of the first rank, as reports show them; samples of all ranks.
void AddTraining(const Steps& steps, std::vector<Value>& values) {
  if (steps.ranks.empty()) return;
  const Steps::OfRank& first = steps.ranks.begin()->second;
  int64_t all_ns = 0;
  for (const int64_t ns : first.share_ns) all_ns += ns;
  if (first.steps == 0 || all_ns <= 0) return;
  AddValue(values, {kStepTime, "s", {}},
           static_cast<double>(all_ns) / static_cast<double>(first.steps) / kNsPerSecond);
  double rate = 0;
  for (const auto& [rank, of] : steps.ranks) {
    if (of.span_ns > 0)
      rate += static_cast<double>(of.samples) * kNsPerSecond / static_cast<double>(of.span_ns);
  }
  if (rate > 0) AddValue(values, {kSamplesRate, "count/s", {}}, rate);
  for (size_t i = 0; i < record::kShareCount; ++i) {
    const std::string name(record::Name(static_cast<record::Share>(i)));
    if (first.share_ns[i] > 0)
      AddValue(values, {kShareOfStep, "ratio", {{"share", name}}},
               static_cast<double>(first.share_ns[i]) / static_cast<double>(all_ns));
  }
}

class Stretches {
 public:
  Stretches(const record::Stage& stage, int64_t after_ns, int64_t last_ns)
      : stage_(stage), after_ns_(after_ns), last_ns_(last_ns) {
    for (const record::RankInfo& rank : stage.ranks) AddSteps(rank);
    size_t series = 0;
    for (const record::Series& each : stage.series) {
      if (IsSent(each.key) && series++ < kMostSeries) AddReadings(each);
    }
  }

  std::vector<Sample> Samples(int64_t wall_offset_ns) {
    std::vector<Sample> samples;
    int64_t step = 0;
    for (auto& [end_ns, stretch] : stretches_) {
      step = std::max(step, stretch.steps.done);
      Sample sample{end_ns, end_ns + wall_offset_ns, step, {}};
      AddTraining(stretch.steps, sample.values);
      for (Value& value : stretch.machine) sample.values.push_back(std::move(value));
      if (end_ns > after_ns_ && !sample.values.empty()) samples.push_back(std::move(sample));
    }
    return samples;
  }

 private:
  struct Stretch {
    Steps steps;
    std::vector<Value> machine;
  };

  // The stretch that takes what was recorded then; null if that is not sent yet. The last one ends with its stage.
  Stretch* At(int64_t t_ns) {
    const bool ended = stage_.state == record::StageState::kEnded;
    int64_t end_ns = StretchEnd(stage_.begin_ns, t_ns);
    if (ended) end_ns = std::min(end_ns, std::max(stage_.end_ns, t_ns));
    return end_ns <= last_ns_ ? &stretches_[end_ns] : nullptr;
  }

  void AddSteps(const record::RankInfo& rank) {
    for (const record::StepWindow& window : rank.windows) {
      if (Stretch* const stretch = At(window.end_ns))
        stretch->steps.Add(rank, window, &rank == &stage_.ranks.front());
    }
  }

  void AddReadings(const record::Series& series) {
    Stretch* current = nullptr;
    double sum = 0;
    size_t count = 0;
    const auto finish = [&] {
      if (current && count > 0) AddValue(current->machine, series.key, sum / static_cast<double>(count));
    };
    for (const record::Reading& reading : series.readings) {
      Stretch* const stretch = At(reading.t_ns);
      if (stretch != current) {
        finish();
        current = stretch;
        sum = 0;
        count = 0;
      }
      sum += reading.value;
      ++count;
    }
    finish();
  }

  const record::Stage& stage_;
  const int64_t after_ns_, last_ns_;
  std::map<int64_t, Stretch> stretches_;  // by their end
};

// What a label says; empty where there is none.
std::string Said(const record::SeriesKey& key, const char* label) {
  const auto at = key.labels.find(label);
  return at == key.labels.end() ? "" : at->second;
}

// Of a mount's name, too, nothing is left that MLflow could take for a path.
std::string Allowed(std::string_view text) {
  std::string allowed(text);
  for (char& each : allowed) {
    const bool plain = std::isalnum(static_cast<unsigned char>(each)) || each == '-' || each == '.';
    if (!plain) each = '_';
  }
  return allowed;
}

}  // namespace

std::vector<Sample> SamplesOf(const record::Recording& recording, int64_t after_ns, int64_t settle_ns) {
  std::vector<Sample> samples;
  for (const record::Stage& stage : recording.stages) {
    const bool ended = stage.state == record::StageState::kEnded;
    const int64_t last_ns = ended ? stage.end_ns : stage.end_ns - settle_ns;
    std::ranges::move(Stretches(stage, after_ns, last_ns).Samples(recording.wall_offset_ns),
                      std::back_inserter(samples));
  }
  return samples;
}

bool IsOfTraining(const record::SeriesKey& key) {
  return key.name == kStepTime || key.name == kSamplesRate || key.name == kShareOfStep;
}

std::string NameOfLogged(const record::SeriesKey& key) {
  const std::string rank = Said(key, "rank");
  return "logged/" + Allowed(Said(key, "metric")) + (rank == "0" ? "" : "/rank_" + Allowed(rank));
}

std::string NameOf(const record::SeriesKey& key) {
  if (key.name == kStepTime) return "fullbore/step_s";
  if (key.name == kSamplesRate) return "fullbore/samples_per_s";
  if (key.name == kShareOfStep) return "fullbore/" + key.labels.begin()->second;
  if (record::IsOf(key, record::Metric::kLogged)) return NameOfLogged(key);
  std::string name = "system/" + Allowed(key.name);
  for (const auto& [label, value] : key.labels) name += "/" + Allowed(label) + "_" + Allowed(value);
  return name;
}

}  // namespace fullbore::watch
