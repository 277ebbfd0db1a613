#include "measure/collect/loader_meter.h"

#include <optional>

#include "base/clock.h"
#include "record/loader_stage.h"

namespace fullbore::collect {

namespace {

using nlohmann::json;
using record::Metric;

// Totals so close together (the end of an epoch followed by the loader's end) say little about a rate.
constexpr int64_t kMinNs = kNsPerSecond / 10;
constexpr size_t kMaxWaiting = 10'000;
// After the groups of the probes, which count from 0: each rank's loaders have a group of their own.
constexpr int kFirstGroup = 1000;

std::optional<int64_t> CountOf(const json& object, const char* key) {
  constexpr int64_t kLargest = int64_t{1} << 62;  // the difference of two must not overflow
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number_integer()) return std::nullopt;
  const auto value = at->get<int64_t>();
  return value < 0 || value > kLargest ? std::nullopt : std::optional(value);
}

}  // namespace

void LoaderMeter::Add(int64_t t_ns, Metric metric, const record::Labels& labels, double value) {
  readings_.push_back({t_ns, metric, labels, value});
}

void LoaderMeter::AddStage(const Totals& before, const Totals& now, const std::string& stage,
                           record::Labels labels) {
  const json& last = now.stages.at(stage);
  // A stage is not listed before its first sample: until then it did nothing.
  const auto at = before.stages.find(stage);
  const json none = json::object();
  const json& first = at == before.stages.end() ? none : at->second;
  const auto wall_ns = static_cast<double>(now.t_ns - before.t_ns);
  const auto per_ns = [&](const char* total) -> std::optional<double> {
    const auto value = CountOf(last, total);
    if (!value) return std::nullopt;
    const int64_t grown = *value - CountOf(first, total).value_or(0);
    if (grown < 0) return std::nullopt;  // from another loader: the count began again
    return static_cast<double>(grown) / wall_ns;
  };
  if (const auto bytes = per_ns("bytes"); bytes && stage == "read")
    Add(now.t_ns, Metric::kLoaderRead, labels, *bytes * 1e9);
  const auto known = record::LoaderStageNamed(stage);
  const auto waits_for = known ? record::BlockedIn(*known) : std::nullopt;
  if (const auto blocked = per_ns("blocked_ns"); blocked && waits_for)
    Add(now.t_ns, *waits_for, labels, *blocked);
  labels["stage"] = stage;
  if (const auto busy = per_ns("busy_ns")) Add(now.t_ns, Metric::kLoaderBusy, labels, *busy);
  if (const auto samples = per_ns("samples")) Add(now.t_ns, Metric::kLoaderSamples, labels, *samples * 1e9);
  if (const auto threads = CountOf(last, "threads"))
    Add(now.t_ns, Metric::kLoaderThreads, labels, static_cast<double>(*threads));
}

void LoaderMeter::OnTotals(const json& line) {
  const auto id = CountOf(line, "id"), t_ns = CountOf(line, "t"), wait_ns = CountOf(line, "consumer_wait_ns");
  const auto stages = line.find("stages");
  if (!id || !t_ns || !wait_ns || stages == line.end() || !stages->is_array()) return;
  Totals now;
  now.t_ns = *t_ns;
  now.wait_ns = *wait_ns;
  for (const json& stage : *stages) {
    if (!stage.is_object()) continue;
    const auto name = stage.find("name");
    if (name != stage.end() && name->is_string()) now.stages[name->get<std::string>()] = stage;
  }
  const auto [at, is_first] = before_.try_emplace(*id, now);
  if (is_first) return;
  Totals& before = at->second;
  const int64_t wall_ns = now.t_ns - before.t_ns;
  if (wall_ns < kMinNs) return;
  if (readings_.size() > kMaxWaiting) readings_.clear();
  const record::Labels labels = {{"loader", std::to_string(*id)}};
  for (const auto& [stage, totals] : now.stages) AddStage(before, now, stage, labels);
  if (now.wait_ns >= before.wait_ns) {
    Add(now.t_ns, Metric::kLoaderWait, labels,
        static_cast<double>(now.wait_ns - before.wait_ns) / static_cast<double>(wall_ns));
  }
  for (const auto& [total, metric] : {std::pair("ready_batches", Metric::kLoaderReadyBatches),
                                      std::pair("ready_capacity", Metric::kLoaderReadyCapacity)}) {
    if (const auto value = CountOf(line, total)) Add(now.t_ns, metric, labels, static_cast<double>(*value));
  }
  before = std::move(now);
}

void LoaderMeter::Drain(int rank, record::RunWriter& writer) {
  for (Reading& reading : readings_) {
    reading.labels["rank"] = std::to_string(rank);
    writer.AppendReading(kFirstGroup + rank, record::KeyOf(reading.metric, std::move(reading.labels)),
                         reading.t_ns, reading.value);
  }
  readings_.clear();
}

}  // namespace fullbore::collect
