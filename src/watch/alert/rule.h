// A rule as in docs/alerts.md: when somebody wants to be told about a run, and how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "record/recording.h"

namespace fullbore::watch {

enum class Side : uint8_t { kAbove, kBelow };

struct Sight;  // sight.h: whether a condition holds at a moment, and what there is to say of it
struct View;

// The kinds: what is looked at, by a function in one of the files of look/. Ratios are 0..1, times nanoseconds.
struct FindingShare {  // a finding of the last minute takes more of the step than this
  std::string id;      // "input-bound"
  double above = 0;
  Sight Look(const View& view) const;
};
struct SeriesLevel {  // the mean of a minute; of several series with the name and labels, the worst
  std::string name;   // "gpu_utilization"
  record::Labels labels;
  Side side = Side::kAbove;
  double level = 0;
  Sight Look(const View& view) const;
};
struct ThroughputDrop {  // against the run's own past, and outside its noise
  double above = 0;      // a smaller drop does not count
  Sight Look(const View& view) const;
};
struct NoSteps {     // for so many times the usual; if something still computes, ten times that
  double above = 0;  // times
  Sight Look(const View& view) const;
};
struct IdleDevice {  // the run holds it, and nothing runs on it
  double below = 0;  // utilisation
  Sight Look(const View& view) const;
};
struct LostDevice {
  Sight Look(const View& view) const;
};
struct ThrottledDevice {  // by heat
  double above = 0;       // of the time
  Sight Look(const View& view) const;
};
struct MemoryEnds {  // at the rate of the last minutes, or nearly now
  int64_t within_ns = 0;
  Sight Look(const View& view) const;
};
struct DiskFills {  // the same
  int64_t within_ns = 0;
  double above = 0;  // filled to this, it counts whatever the rate
  Sight Look(const View& view) const;
};
struct RunFailed {  // with an error, for lack of memory, or cut off; not by Ctrl-C
  Sight Look(const View& view) const;
};

using Condition = std::variant<FindingShare, SeriesLevel, ThroughputDrop, NoSteps, IdleDevice, LostDevice,
                               ThrottledDevice, MemoryEnds, DiskFills, RunFailed>;

// Who is told.
struct Target {
  enum class Kind : uint8_t { kLog, kCommand, kWebhook, kSlack, kTeams, kDiscord, kAlertmanager };
  Kind kind = Kind::kLog;
  std::string place;  // path or URL; may hold a secret: see Shown

  bool operator==(const Target&) const = default;
};

// "webhook:https://hooks.example.com/***": what may be printed and stored. Of a webhook's URL the path is its password.
std::string Shown(const Target& target);

struct Rule {
  std::string name;
  Condition condition;
  int64_t for_ns = 0;  // how long it must hold
  std::vector<Target> notify;
};

struct Price {
  double per_hour = 0;
  std::string currency;
};

struct RuleSet {
  std::vector<Rule> rules;
  std::optional<Price> price;
};

}  // namespace fullbore::watch
