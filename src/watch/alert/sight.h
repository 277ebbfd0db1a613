// What a rule sees when it looks at a run: whether its condition holds at that moment, and what to say about it. Pure:
// the same answer for the same recording and time; nothing after that time is looked at.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"
#include "watch/alert/past.h"
#include "watch/alert/rule.h"

namespace fullbore::watch {

struct Sight {
  // Between kHolds and kOver, a pending or firing alert stays as it is, so that it does not flap if its figure
  // oscillates around the threshold. kUnknown changes nothing at all.
  enum class State : uint8_t { kUnknown, kOver, kBetween, kHolds };
  State state = State::kUnknown;
  std::string what;  // one sentence with the figures in it
  std::vector<diagnose::Evidence> evidence;
  std::vector<std::string> fix;
  std::optional<double> lost;       // share of the time that it holds, 0..1; absent if unknown
  std::optional<int64_t> since_ns;  // where it is known to have begun before
};

// One moment of the newest stage of a run. `recording` holds at least the minute before it.
class Moment {
 public:
  Moment(const record::Recording& recording, const Past& past, int64_t now_ns, bool cut_off = false)
      : recording_(&recording), past_(&past), now_ns_(now_ns), cut_off_(cut_off) {}

  const record::Recording& recording() const { return *recording_; }
  const record::Stage& stage() const { return recording_->stages.back(); }
  const Past& past() const { return *past_; }
  int64_t now_ns() const { return now_ns_; }
  bool cut_off() const { return cut_off_; }  // still marked as running, but nobody records it any more
  bool ended() const;

  // The mean of a series over the last `ns`; nothing without readings.
  std::optional<double> Mean(const record::Series& series, int64_t ns) const;
  // Whether the series is of a GPU that the command uses, or of no GPU.
  bool IsOurs(const record::SeriesKey& key) const;
  // Cores that the command has used since then.
  std::optional<double> CoresSince(int64_t since_ns) const;
  // Of the last `ns`; made once for each length.
  const diagnose::Diagnosis& DiagnosisOf(int64_t ns) const;

 private:
  const record::Recording* recording_;
  const Past* past_;
  int64_t now_ns_;
  bool cut_off_;
  mutable std::map<int64_t, std::shared_ptr<const diagnose::Diagnosis>> diagnoses_;
};

// What a condition looks at.
struct View {
  const Moment& moment;
  int64_t for_ns = 0;     // how long it must hold
  int64_t window_ns = 0;  // how long is looked at to decide at one moment
  // Since when an alert of it is pending or firing: what was usual is what was before.
  std::optional<int64_t> since_ns;
};

// How long is looked at to decide at one moment: a minute, less where an alert is wanted sooner.
int64_t WindowOf(const Rule& rule);

// `since_ns`: as in View.
Sight LookAt(const Rule& rule, const Moment& moment, std::optional<int64_t> since_ns = std::nullopt);

}  // namespace fullbore::watch
