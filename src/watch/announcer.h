// Decides when a verdict about a run that goes on is worth a line on its terminal, and words it.
//
// People leave a training alone once it runs, so a line must be right, and must not come twice: a verdict is said when
// two looks in a row agree and its gain is sure, and another one only when it has replaced the first for good. Healthy
// runs hear nothing, nor do those whose loss may be the doing of other programs on the machine.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace fullbore::watch {

// The first finding of a report, as far as a line can hold it.
struct Verdict {
  std::string id, cause, title;
  std::string change;  // in code; may be empty
  bool critical = false;
  bool noisy = false;  // others' programs may be all that it is about
  int64_t steps = 0;   // that the report is of
  struct Gain {
    double expected = 1, low = 1, high = 1;
  };
  std::optional<Gain> gain;

  bool SameAs(const Verdict& other) const { return id == other.id && cause == other.cause; }
};

// Of a report object (docs/report.schema.json); nothing where it holds no finding or is not one.
std::optional<Verdict> VerdictOf(const nlohmann::json& report);

class Announcer {
 public:
  // What to say after this look, which comes after the ones before it; mostly nothing.
  std::optional<std::string> Heard(const Verdict& verdict);

 private:
  Verdict last_, said_;
  int agreeing_ = 0;  // looks in a row that gave `last_`
  int lines_ = 0;
};

}  // namespace fullbore::watch
