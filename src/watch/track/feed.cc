#include "watch/track/feed.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/clock.h"
#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/logged.h"
#include "record/metrics.h"

namespace fullbore::watch {

namespace {

// A script opens its own run with a tracker before it trains; one that never trains is begun without.
constexpr int64_t kWaitsForStepsNs = 300 * kNsPerSecond;

bool HasTrained(const record::Stage& stage) {
  return std::ranges::any_of(stage.ranks, [](const record::RankInfo& rank) { return !rank.windows.empty(); });
}

bool MayBegin(const record::Stage& stage, bool over) {
  return over || HasTrained(stage) || stage.end_ns - stage.begin_ns > kWaitsForStepsNs;
}

using GivenMetrics = std::set<std::pair<std::string, std::string>>;  // by rank and name

// What the script logs into this kind of tracker itself.
GivenMetrics GivenTo(std::string_view logger, const record::Recording& recording) {
  GivenMetrics given;
  if (logger.empty()) return given;
  for (const record::Stage& stage : recording.stages) {
    for (const record::RankInfo& rank : stage.ranks) {
      for (const std::string& metric : diagnose::MetricsGivenTo(logger, rank))
        given.emplace(std::to_string(rank.rank), metric);
    }
  }
  return given;
}

// It has them already.
void LeaveOut(const GivenMetrics& given, std::vector<Sample>& samples) {
  for (Sample& sample : samples) {
    std::erase_if(sample.values, [&](const Value& value) {
      if (!record::IsOf(value.key, record::Metric::kLogged)) return false;
      const auto rank = value.key.labels.find("rank"), metric = value.key.labels.find("metric");
      const bool has_both = rank != value.key.labels.end() && metric != value.key.labels.end();
      return !has_both || given.contains({rank->second, metric->second});
    });
  }
  std::erase_if(samples, [](const Sample& sample) { return sample.values.empty(); });
}

bool Delivered(const Attempt& attempt) { return attempt.end == Attempt::End::kDelivered; }

}  // namespace

TrackedRun Feed::RunOf(const record::Recording& recording) const {
  TrackedRun run = TrackedRun::Of(recording);
  run.is_live = origin_ == Origin::kLive;
  return run;
}

Attempt Feed::Bring(const record::Recording& recording, bool over) {
  const Attempt nothing_to_do = {Attempt::End::kDelivered, ""};
  if (done_ || recording.stages.empty()) return nothing_to_do;
  if (!begun_) {
    if (!MayBegin(recording.stages.back(), over)) return nothing_to_do;
    if (Attempt begun = tracker_->Begin(RunOf(recording)); !Delivered(begun)) return begun;
    begun_ = true;
  }
  if (Attempt sent = SendSamples(recording, over); !Delivered(sent) || !over) return sent;
  return Conclude(recording);
}

Attempt Feed::SendSamples(const record::Recording& recording, bool over) {
  std::vector<Sample> samples = SamplesOf(recording, sent_until_ns_, over ? 0 : kSettleNs);
  LeaveOut(GivenTo(tracker_->logger(), recording), samples);
  for (auto next = samples.begin(); next != samples.end();) {
    const auto end = next + std::min<std::ptrdiff_t>(Tracker::kMostSamples, samples.end() - next);
    const std::vector<Sample> some(std::make_move_iterator(next), std::make_move_iterator(end));
    if (Attempt sent = tracker_->Send(some); !Delivered(sent))
      return sent;
    else if (!sent.problem.empty())
      partly_ = sent.problem;
    for (const Sample& sample : some) sent_ += static_cast<int64_t>(sample.values.size());
    sent_until_ns_ = some.back().end_ns;
    next = end;
  }
  return {Attempt::End::kDelivered, ""};
}

Attempt Feed::Conclude(const record::Recording& recording) {
  Conclusion conclusion;
  conclusion.judgement = Judgement::Of(diagnose::Diagnose(recording), recording);
  conclusion.failed = recording.stages.back().exit_status.value_or(1) != 0;
  Attempt ended = tracker_->End(RunOf(recording), conclusion);
  done_ = Delivered(ended);
  return ended;
}

}  // namespace fullbore::watch
