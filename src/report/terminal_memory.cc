// What holds a device's memory, and what another batch would take of it, on the terminal.
#include <algorithm>

#include "base/text.h"
#include "report/device_memory.h"
#include "report/palette.h"
#include "report/terminal_screen.h"

namespace fullbore::report {

void Screen::Memory() {
  // What the script logs is a part of its own, and so is what follows it.
  if (!d_.logged.empty() && (d_.memory || d_.memory_what_if)) Line();
  if (d_.memory) MemoryBar(*d_.memory);
  if (!d_.memory_what_if) return;
  const diagnose::MemoryWhatIf& answer = *d_.memory_what_if;
  const bool fits = answer.missing.empty() && FitText(answer) == "fits";
  Paragraph(MemoryWhatIfText(answer), 2, 4, fits ? kGreen : "33");
}

void Screen::MemoryBar(const diagnose::MemoryBudget& budget) {
  const Piece label = Plain("device memory " + MemoryTitle(d_));
  const int room = style_.width - 2 - Columns(label.plain) - 3;
  const Piece bar = ShareBar(MemoryShares(budget), std::clamp(room, 1, kBarColumns), style_, kMemoryLooks);
  Flow({{label.plain + "   " + bar.plain, label.painted + "   " + bar.painted}}, "", 2, 2);
  std::vector<Piece> legend;
  for (const diagnose::MemoryPart& part : budget.parts) {
    const auto look = std::ranges::find(kMemoryLooks, part.name, &ShareLook::name);
    if (look == kMemoryLooks.end()) continue;
    legend.push_back(
        LegendEntry(*look, Clean(std::string(look->label) + " " + MemoryPartText(part)), style_));
  }
  Flow(legend, "   ", 2, 2);
}

}  // namespace fullbore::report
