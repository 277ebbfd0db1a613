#include "report/export/moment.h"

#include <cmath>
#include <string>

#include "base/text.h"

namespace fullbore::exporting {

Result<Moment> ParseMoment(std::string_view text) {
  const Error wrong{ErrorCode::kInvalidArgument, "'" + std::string(text) + "' is not a moment in a recording",
                    "write 1.5s, 200ms, 30us or 500ns from its beginning, or step:12"};
  constexpr std::string_view kStep = "step:";
  if (text.starts_with(kStep)) {
    const auto step = ParseInt(text.substr(kStep.size()));
    if (!step || *step < 0) return wrong;
    return Moment{0, *step};
  }
  struct Unit {
    std::string_view name;
    double ns;
  };
  constexpr Unit kUnits[] = {{"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"s", 1e9}};
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = ParseDouble(text.substr(0, text.size() - unit.name.size()));
    constexpr double kMaxNs = 1e18;
    if (!number || !(*number >= 0) || *number * unit.ns > kMaxNs) return wrong;
    return Moment{std::llround(*number * unit.ns), std::nullopt};
  }
  return wrong;
}

}  // namespace fullbore::exporting
