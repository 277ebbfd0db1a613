// What the recorded steps would take with changes made, and what a profiler saw of a few of them, on the terminal.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "report/terminal_screen.h"

namespace fullbore::report {

// "one after the other   177.6 ms → 126.7 ms workers → 104.9 ms compile": the step after each change.
void Screen::Rungs(std::string_view label, const std::vector<diagnose::Rung>& rungs) {
  std::vector<Piece> pieces{Plain(FormatDuration(static_cast<int64_t>(d_.mean_step_ns)))};
  for (const diagnose::Rung& rung : rungs) {
    const double step_ns = d_.mean_step_ns / rung.speedup.expected;
    pieces.push_back(Plain(fmt::format("{} {}", FormatDuration(static_cast<int64_t>(step_ns)), rung.change)));
  }
  pieces.front().plain = fmt::format("{}   {}", label, pieces.front().plain);
  pieces.front().painted = Paint(std::string(label), kDim, style_).painted + "   " + pieces.front().painted;
  Flow(pieces, style_.unicode ? " → " : " -> ", 2, 4);
}

// "device=AMD Instinct MI300X: matmul_tensor 9 ms → 10 ms (8 ms to 14 ms), ...": what classes take in a step.
void Screen::Classes(const diagnose::Rung& rung) {
  constexpr double kWorthAWord = 0.01;
  double device_ns = 0;
  for (const diagnose::ClassTime& time : rung.classes) device_ns += time.now_ns;
  if (device_ns <= 0) return;
  const auto duration = [](double ns) { return FormatDuration(static_cast<int64_t>(ns)); };
  std::string text;
  for (const diagnose::ClassTime& time : rung.classes) {
    if (time.now_ns < kWorthAWord * device_ns) continue;
    text += fmt::format("{}{} {} {} {} ({} to {})", text.empty() ? "" : ", ", time.kernel_class,
                        duration(time.now_ns), style_.unicode ? "→" : "->", duration(time.expected_ns),
                        duration(time.low_ns), duration(time.high_ns));
  }
  Paragraph(fmt::format("{}: {}", rung.change, text), 4, 6, kDim);
}

// What the findings' predictions add up to, given one another, and what the user asked for.
void Screen::Replay() {
  if (!d_.replay) return;
  const diagnose::ReplayReport& replay = *d_.replay;
  if (replay.ladder.empty() && replay.what_if.empty() && replay.refused.empty() && !replay.rough) return;
  Line();
  if (!replay.ladder.empty()) Rungs("one after the other", replay.ladder);
  if (!replay.what_if.empty()) Rungs("what if", replay.what_if);
  for (const diagnose::Rung& rung : replay.what_if) Classes(rung);
  for (const auto& [change, why] : replay.refused)
    Paragraph(fmt::format("what if {}: cannot be made here: {}", change, why), 2, 4, "33");
  if (replay.rough) {
    Paragraph(fmt::format("{}: run again unchanged, the recorded steps come out {} off",
                          replay.predicts ? "predictions are rough" : "no predictions",
                          FormatPercent(replay.error)),
              2, 4, "33");
  }
}

// "steps 32 to 35 under the profiler: aten::linear 31 % (12 GFLOP/s), AddmmBackward0 28 %, ...": what the host's clock
// does not show.
void Screen::DeviceWindow() {
  constexpr size_t kMostNamed = 5;
  constexpr double kWorthAWord = 0.02;
  if (!d_.device_window) return;
  const diagnose::WindowReport& window = *d_.device_window;
  std::vector<std::string> parts;
  for (const auto& [share, ratio] : window.shares) {
    if (ratio >= kWorthAWord) parts.push_back(fmt::format("{} {}", share, FormatPercent(ratio)));
  }
  for (const auto& one : window.operators) {
    if (parts.size() == kMostNamed || one.share < kWorthAWord) break;
    const std::string rate =
        one.flops_per_s ? fmt::format(" ({} GFLOP/s)", FormatCount(*one.flops_per_s / 1e9)) : "";
    parts.push_back(fmt::format("{} {}{}", one.name, FormatPercent(one.share), rate));
  }
  if (parts.empty()) return;
  const int64_t last_step = window.first_step + window.steps - 1;
  const std::string steps = window.steps == 1 ? fmt::format("step {}", last_step)
                                              : fmt::format("steps {} to {}", window.first_step, last_step);
  Paragraph(fmt::format("{} in {}{}: {}", window.device ? "the device" : "the CPU", steps,
                        window.device ? "" : ", under its profiler", fmt::join(parts, ", ")),
            2, 4, kDim);
}

}  // namespace fullbore::report
