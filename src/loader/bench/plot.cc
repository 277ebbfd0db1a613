#include "loader/bench/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/print.h"
#include "base/text.h"

namespace fullbore::loader::bench {
namespace {

constexpr int kMinBar = 10, kMaxBar = 40;

std::string Paint(const std::string& text, const char* code, const PlotStyle& style) {
  return style.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

std::string Rate(double samples_per_s) { return FormatCount(std::round(samples_per_s)); }

// Bars of the loader and of torch share one scale, so that they can be compared.
double LargestRate(const Flow& flow) {
  double largest = 0;
  for (const Point& point : flow.points) largest = std::max(largest, point.samples_per_s);
  for (const TorchPoint& point : flow.torch) largest = std::max(largest, point.samples_per_s);
  return largest;
}

// The stages of any point, in processing order.
std::vector<std::string> StageNames(const Flow& flow) {
  std::vector<std::string> names;
  for (const char* name : {"read", "decode", "transform", "collate"}) {
    const bool there = std::any_of(flow.points.begin(), flow.points.end(), [&](const Point& point) {
      return std::any_of(point.stages.begin(), point.stages.end(),
                         [&](const StageCost& stage) { return stage.name == name; });
    });
    if (there) names.emplace_back(name);
  }
  return names;
}

std::string CostText(const Point& point, const std::string& name) {
  for (const StageCost& stage : point.stages) {
    if (stage.name == name)
      return fmt::format("{:.{}f}", stage.us_per_sample, stage.us_per_sample < 10 ? 1 : 0);
  }
  return "";
}

std::string PointRows(const Flow& flow, const PlotStyle& style) {
  if (flow.points.empty()) return "";
  constexpr int kColumn = 11;
  const std::vector<std::string> stages = StageNames(flow);
  const int used = 2 + 9 + 13 + 2 + kColumn * static_cast<int>(stages.size());
  const int cells = std::clamp(style.width - used, kMinBar, kMaxBar);
  std::string out = fmt::format("  {:>9}{:>13}", "threads", "samples/s");
  for (const std::string& name : stages) out += fmt::format("{:>{}}", name, kColumn);
  out += stages.empty() ? "\n" : "   (us of thread time per sample)\n";
  const double largest = LargestRate(flow);
  for (const Point& point : flow.points) {
    out += fmt::format("  {:>9}{:>13}", point.threads, Rate(point.samples_per_s));
    for (const std::string& name : stages) out += fmt::format("{:>{}}", CostText(point, name), kColumn);
    out += "  " + Paint(Bar(point.samples_per_s / largest, cells, style), "36", style) + "\n";
  }
  return out;
}

std::string TorchRows(const Flow& flow, const PlotStyle& style) {
  if (flow.torch.empty()) return "";
  std::string out = FormatPrintable(style.unicode, "\n  PyTorch's DataLoader ({})\n  {:>9}{:>13}\n",
                                    flow.torch_versions, "workers", "samples/s");
  const double largest = LargestRate(flow);
  double best = 0;
  for (const TorchPoint& point : flow.torch) {
    out += fmt::format("  {:>9}{:>13}  {}\n", point.workers, Rate(point.samples_per_s),
                       Paint(Bar(point.samples_per_s / largest, kMaxBar, style), "33", style));
    best = std::max(best, point.samples_per_s);
  }
  double ours = 0;
  for (const Point& point : flow.points) ours = std::max(ours, point.samples_per_s);
  if (best > 0 && ours > 0)
    out += fmt::format("  fullbore.data reaches {:.1f} times its best rate\n", ours / best);
  return out;
}

std::string ReadingRows(const Flow& flow) {
  std::string out;
  for (const Reading& reading : flow.readings) {
    out += fmt::format("  reading alone, {}: {} samples/s ({}/s) with {} reader{}\n",
                       reading.cold ? "not in memory" : "in memory", Rate(reading.samples_per_s),
                       FormatBytes(reading.bytes_per_s), reading.readers, reading.readers == 1 ? "" : "s");
  }
  return out.empty() ? out : "\n" + out;
}

std::string Head(const Flow& flow, const PlotStyle& style) {
  std::string out =
      FormatPrintable(style.unicode, "fullbore loader bench: {}\n  {} samples of {}", flow.path,
                      FormatCount(static_cast<double>(flow.samples)), FormatBytes(flow.bytes_per_sample));
  if (flow.used_samples > 0 && flow.used_samples < flow.samples) {
    out += fmt::format(" ({} of them measured)", FormatCount(static_cast<double>(flow.used_samples)));
  }
  if (!flow.row.empty()) out += " -> " + Printable(flow.row, style.unicode);  // known once there was a batch
  return out + fmt::format(", batches of {}, {} core{}\n\n", flow.batch_size, flow.cores,
                           flow.cores == 1 ? "" : "s");
}

}  // namespace

std::string Bar(double share, int cells, const PlotStyle& style) {
  static constexpr std::array kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double length = std::clamp(share, 0.0, 1.0) * cells;
  std::string bar;
  if (!style.unicode) return std::string(static_cast<size_t>(std::lround(length)), '#');
  const auto eighths = static_cast<size_t>(std::lround(length * 8));
  for (size_t i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + kEighths[eighths % 8];
}

std::string ToTerminal(const Flow& flow, double wanted_samples_per_s, const PlotStyle& style) {
  std::string out = Head(flow, style) + PointRows(flow, style) + ReadingRows(flow) + TorchRows(flow, style);
  for (const std::string& note : flow.notes) out += FormatPrintable(style.unicode, "\n  note: {}", note);
  if (!flow.notes.empty()) out += "\n";
  if (flow.interrupted) out += "\n  interrupted: this is what was measured until then\n";
  if (const auto verdict = Judge(flow)) {
    out += fmt::format("\n  {}\n  next: {}\n", Paint(verdict->text, "1", style), verdict->next_step);
  }
  if (wanted_samples_per_s > 0 && !flow.points.empty()) {
    out += fmt::format("  {}\n", ThreadsFor(flow, wanted_samples_per_s).text);
  }
  return out;
}

}  // namespace fullbore::loader::bench
