// The table of what tells activities apart, python/fullbore/hook/sampling/activities.txt: the hook reads the same one.
// It travels inside the binary.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "record/recording.h"

namespace fullbore::stacks {

extern const std::string_view kActivitiesText;  // the file itself

// What the training thread does by itself, as the hook times it: a share, and where that is host_other, a part of it.
struct Phase {
  record::Share share = record::Share::kHostOther;
  record::HostOther part = record::HostOther::kUnnamed;
  bool operator==(const Phase&) const = default;
};

struct Wait {
  record::Activity activity = record::Activity::kUnknown;
  bool receives = false;  // something, from another thread or process
};

// Immutable, and cheap to ask: a look-up for each word of a dotted name.
class ActivityTable {
 public:
  static const ActivityTable& Get();

  record::Activity PurposeOf(std::string_view module) const;
  std::optional<Wait> WaitOf(std::string_view module, std::string_view function) const;
  record::Activity CallOf(std::string_view dotted) const;  // "time.sleep", "numpy.ndarray.astype"
  std::optional<Phase> PhaseOf(std::string_view module, std::string_view function) const;
  // Of a method, where only its name is known: a phase ("item"), or an activity ("add_scalar").
  std::optional<Phase> PhaseOfMethod(std::string_view name) const;
  record::Activity ActivityOfMethod(std::string_view name) const;
  std::optional<Phase> PhaseOfUserFunction(std::string_view name) const;

 private:
  ActivityTable();
  void Add(std::string_view section, std::string_view meaning, std::string_view name);

  template <typename Value>
  using Names = std::map<std::string, Value, std::less<>>;
  Names<record::Activity> purposes_, calls_, method_activities_;
  Names<Names<Wait>> waits_;  // by module, then by function; "*" for all
  Names<Phase> phases_, method_phases_, functions_;
};

}  // namespace fullbore::stacks
