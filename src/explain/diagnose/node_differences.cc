#include "explain/diagnose/node_differences.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "explain/diagnose/statistics.h"
#include "record/metrics.h"

namespace fullbore::diagnose {

using record::Metric;
using record::Node;

namespace {

constexpr size_t kFewest = 3;   // machines
constexpr double kUsual = 0.8;  // of the machines
// A mean is another one if it lies further from the others' median than so many times their median deviation from it
// (six: four standard deviations of a normal distribution), and than a tenth of it. A choice.
constexpr double kDeviations = 6, kPart = 0.1;

enum class Worse : uint8_t { kLow, kHigh };

// Of several GPUs or disks the worst one stands for the machine.
struct Row {
  Metric metric;
  Worse worse;
  double least;  // a smaller difference never counts, in the metric's unit
  const char* what;
};

constexpr std::array kRows = {
    Row{Metric::kGpuThrottleThermal, Worse::kHigh, 0.05, "time that its GPUs slow down for heat"},
    Row{Metric::kGpuThrottlePower, Worse::kHigh, 0.05, "time that its GPUs slow down for power"},
    Row{Metric::kGpuSmClock, Worse::kLow, 50e6, "SM clock of its slowest GPU"},
    Row{Metric::kGpuMemoryClock, Worse::kLow, 50e6, "memory clock of its slowest GPU"},
    Row{Metric::kGpuPowerLimit, Worse::kLow, 10, "power limit of its GPUs"},
    Row{Metric::kGpuEccUncorrected, Worse::kHigh, 0.5, "uncorrected memory errors of a GPU"},
    Row{Metric::kGpuRemappedRows, Worse::kHigh, 0.5, "remapped memory rows of a GPU"},
    Row{Metric::kCgroupCpuThrottled, Worse::kHigh, 0.05,
        "scheduling periods in which its quota of cores ran out"},
    Row{Metric::kCpuSteal, Worse::kHigh, 0.02, "time that its host takes from its cores"},
    Row{Metric::kCpuIowait, Worse::kHigh, 0.05, "time that its cores wait for a disk"},
    Row{Metric::kDiskBusy, Worse::kHigh, 0.2, "time that its busiest disk works"},
    Row{Metric::kNetDrops, Worse::kHigh, 10, "packets that its network drops a second"},
    Row{Metric::kSwapIn, Worse::kHigh, 1e6, "memory that it swaps in"},
    Row{Metric::kPsiMemorySome, Worse::kHigh, 0.05, "time that it is short of memory"},
    Row{Metric::kCpuUtilization, Worse::kHigh, 0.1, "use of its cores"},
    Row{Metric::kGpuTemperature, Worse::kHigh, 5, "temperature of its hottest GPU"},
    Row{Metric::kGpuPcieReceive, Worse::kLow, 1e9, "traffic to its slowest GPU over PCIe"},
};
constexpr const char* kOtherPrograms = "cores that other programs keep busy";
constexpr double kLeastOtherCores = 1;

constexpr std::array<std::string_view, 9> kFacts = {
    "cpu_model",           "cores",  "memory_bytes",       "gpus", "gpu0", "driver_version",
    "cuda_driver_version", "kernel", "cgroup_memory_limit"};

std::optional<double> ValueOf(const Node& node, const Row& row) {
  const std::string_view name = record::InfoOf(row.metric).name;
  std::optional<double> worst;
  for (const Node::Mean& mean : node.means) {
    if (mean.key.name != name) continue;
    if (!worst || (row.worse == Worse::kLow ? mean.value < *worst : mean.value > *worst)) worst = mean.value;
  }
  return worst;
}

std::optional<double> OtherCores(const Node& node) {
  const auto cores = node.machine.find("cores_logical");
  std::optional<double> busy, own;
  for (const Node::Mean& mean : node.means) {
    if (mean.key.name == record::InfoOf(Metric::kCpuUtilization).name) busy = mean.value;
    if (mean.key.name == record::InfoOf(Metric::kProcessCpu).name && !mean.key.labels.contains("rank"))
      own = own.value_or(0) + mean.value;
  }
  if (cores == node.machine.end() || !busy || !own) return std::nullopt;
  return std::max(0.0, *busy * ParseDouble(cores->second).value_or(0) - *own);
}

struct Others {
  double median = 0, deviation = 0;
};

std::optional<Others> OthersOf(const std::vector<std::optional<double>>& values, size_t but) {
  std::vector<double> others;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != but && values[i]) others.push_back(*values[i]);
  }
  if (others.size() + 1 < kFewest) return std::nullopt;
  Others summary;
  summary.median = Median(others);
  for (double& each : others) each = std::abs(each - summary.median);
  summary.deviation = Median(others);
  return summary;
}

bool IsOdd(double value, const Others& others, Worse worse, double least) {
  const double by = worse == Worse::kLow ? others.median - value : value - others.median;
  return by >= std::max({least, kDeviations * others.deviation, kPart * std::abs(others.median)});
}

}  // namespace

NodeDifferences::NodeDifferences(const std::vector<Node>& nodes) : values_(kRows.size() + 1) {
  for (const Node& node : nodes) {
    for (size_t i = 0; i < kRows.size(); ++i) values_[i].push_back(ValueOf(node, kRows[i]));
    values_.back().push_back(OtherCores(node));
    facts_.push_back(node.machine);
  }
  for (const std::string_view fact : kFacts) {
    std::map<std::string, size_t> count;
    for (const auto& machine : facts_) {
      const auto found = machine.find(std::string(fact));
      if (found != machine.end()) ++count[found->second];
    }
    for (const auto& [text, machines] : count) {
      if (static_cast<double>(machines) >= kUsual * static_cast<double>(facts_.size()))
        usual_[std::string(fact)] = text;
    }
  }
}

std::vector<Difference> NodeDifferences::Of(size_t node) const {
  std::vector<Difference> differences;
  if (facts_.size() < kFewest) return differences;
  const auto add = [&](size_t row, const Row& as, const std::string& unit) {
    const auto& value = values_[row][node];
    const auto others = value ? OthersOf(values_[row], node) : std::nullopt;
    if (!others || !IsOdd(*value, *others, as.worse, as.least)) return;
    differences.push_back({std::string(record::InfoOf(as.metric).name), as.what, FormatQuantity(*value, unit),
                           FormatQuantity(others->median, unit)});
  };
  add(kRows.size(), {Metric::kCpuUtilization, Worse::kHigh, kLeastOtherCores, kOtherPrograms}, "cores");
  for (size_t i = 0; i < kRows.size(); ++i)
    add(i, kRows[i], std::string(record::InfoOf(kRows[i].metric).unit));
  for (const auto& [fact, usual] : usual_) {
    const auto found = facts_[node].find(fact);
    if (found != facts_[node].end() && found->second != usual)
      differences.push_back({fact, fact, found->second, usual});
  }
  return differences;
}

}  // namespace fullbore::diagnose
