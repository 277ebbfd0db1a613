#include "cli/alerts_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/print.h"
#include "base/text.h"
#include "cli/output.h"

namespace fullbore::cli {

void PrintAlerts(const std::vector<watch::Alert>& alerts, const watch::Origin& origin,
                 const std::optional<watch::Price>& price) {
  constexpr int kTime = 19, kLasted = 12;
  int name = 5;
  for (const watch::Alert& alert : alerts)
    name = std::max(name, std::min(30, Columns(Printable(alert.rule, LocaleIsUtf8()))));
  Print(stdout, "{}  {}  {}  what\n", Pad("fired (UTC)", kTime), Pad("for", kLasted), Pad("alert", name));
  for (const watch::Alert& alert : alerts) {
    const std::string lasted =
        alert.resolved_ns ? FormatDuration(*alert.resolved_ns - alert.fired_ns) : "still fires";
    const std::string loss = watch::LossInWords(alert, price);
    const std::string rule = Elide(Printable(alert.rule, LocaleIsUtf8()), name, LocaleIsUtf8());
    const std::string head = fmt::format("{}  {}  {}  ", FormatUtc(alert.fired_ns + origin.wall_offset_ns),
                                         Pad(lasted, kLasted), Pad(rule, name));
    const std::string what = alert.what + (loss.empty() ? "" : " (" + loss + ")");
    const int indent = kTime + kLasted + name + 6;
    const int room = std::max(20, OutputColumns() - indent);
    bool first = true;
    for (const std::string& line : Wrap(Printable(what, LocaleIsUtf8()), room)) {
      Print(stdout, "{}{}\n", first ? head : std::string(static_cast<size_t>(indent), ' '), line);
      first = false;
    }
  }
}

}  // namespace fullbore::cli
