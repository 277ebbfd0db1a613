#include "explain/diagnose/memory_budget.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fullbore::diagnose {

using record::Labels;
using record::Metric;

namespace {

double MostOfRank(const View& view, Metric metric, int rank) {
  double most = 0;
  for (const record::Series& series : view.stage().series) {
    const auto label = series.key.labels.find("rank");
    if (!IsOf(series.key, metric) || label == series.key.labels.end()) continue;
    if (label->second != std::to_string(rank)) continue;
    for (const record::Reading& reading : series.readings) most = std::max(most, reading.value);
  }
  return most;
}

// Readings are kept in whole MiB: what the hook says to the byte counts, unless one is higher.
double Finer(double said, double read) { return read > said + 0x1p20 ? read : said; }

// Of other programs on the device, where it is the only one that the command uses: a rank's number of a device says
// nothing of the driver's.
std::optional<double> OfOthers(const View& view) {
  std::optional<std::string> gpu;
  for (const record::Series& series : view.stage().series) {
    const auto owner = series.key.labels.find("owner"), label = series.key.labels.find("gpu");
    if (!IsOf(series.key, Metric::kGpuProcessMemory) || owner == series.key.labels.end()) continue;
    if (owner->second != "command" || label == series.key.labels.end()) continue;
    if (view.Max(Metric::kGpuProcessMemory, series.key.labels).value_or(0) <= 0) continue;
    if (gpu && *gpu != label->second) return std::nullopt;
    gpu = label->second;
  }
  if (!gpu) return std::nullopt;
  return view.Max(Metric::kGpuProcessMemory, {{"gpu", *gpu}, {"owner", "other"}});
}

MemoryPart StatesOf(const HeldMemory& held) {
  MemoryPart part{"states", held.States()};
  for (const auto& [name, types] : held.states) {
    if (SumOf(types) > 0) part.of[name] = SumOf(types);
    for (const auto& [type, bytes] : types) part.types[type] += bytes;
  }
  return part;
}

double SumOf(const std::vector<MemoryPart>& parts) {
  double sum = 0;
  for (const MemoryPart& part : parts) sum += part.bytes;
  return sum;
}

}  // namespace

double PeakOf(const View& view, const HeldMemory& held) {
  return Finer(held.Peak(), MostOfRank(view, Metric::kTorchAllocatedPeak, held.rank));
}

double ReservedOf(const View& view, const HeldMemory& held) {
  const double reserved = Finer(held.reserved, MostOfRank(view, Metric::kTorchReserved, held.rank));
  return std::max(reserved, PeakOf(view, held));
}

std::optional<HeldMemory> FullestRank(const View& view) {
  std::optional<HeldMemory> fullest;
  double most = -1;
  for (const record::RankInfo& rank : view.stage().ranks) {
    auto held = HeldMemoryOf(rank);
    if (!held) continue;
    const double filled = ReservedOf(view, *held) / std::max(1.0, held->total.value_or(0));
    if (filled <= most) continue;
    most = filled;
    fullest = std::move(held);
  }
  return fullest;
}

std::optional<MemoryBudget> MemoryBudgetOf(const View& view) {
  const auto held = FullestRank(view);
  const double peak = held ? PeakOf(view, *held) : 0;
  if (peak <= 0 || held->total.value_or(0) <= 0) return std::nullopt;
  MemoryBudget budget{held->rank, *held->total, {}};
  budget.parts = {{"weights", SumOf(held->weights), {}, held->weights},
                  {"gradients", SumOf(held->gradients), {}, held->gradients},
                  StatesOf(*held)};
  const double outside = held->outside.value_or(0), others = std::min(OfOthers(view).value_or(0), outside);
  budget.parts.push_back({"activations", std::max(0.0, peak - SumOf(budget.parts))});
  budget.parts.push_back({"fragments", ReservedOf(view, *held) - peak});
  budget.parts.push_back({"outside", outside - others});
  budget.parts.push_back({"others", others});
  budget.parts.push_back({"free", budget.total - SumOf(budget.parts)});
  std::erase_if(budget.parts, [](const MemoryPart& part) { return part.bytes <= 0; });
  return budget;
}

}  // namespace fullbore::diagnose
