#include "loader/bench/script_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/print.h"
#include "base/text.h"

namespace fullbore::loader::bench {
namespace {

// A core, or a worker, counts as fully used from this part on: the scheduler and the queue between the
// processes take the rest (0.92 of two cores was the most that training with two workers reached,
// docs/measurements.md).
constexpr double kFull = 0.88;
// If the workers spend more than this share of their time without a core, cores are the bottleneck, whoever
// else uses them.
constexpr double kManyWaits = 0.3;

std::string Rate(double samples_per_s) { return FormatCount(std::round(samples_per_s)); }

std::string BarRow(const char* name, double rate, double largest, const char* color, const PlotStyle& style) {
  constexpr int kCells = 36;
  const std::string bar = Bar(rate / largest, kCells, style);
  return fmt::format("  {:<26}{:>10} samples/s  {}\n", name, Rate(rate),
                     style.color ? fmt::format("\x1b[{}m{}\x1b[0m", color, bar) : bar);
}

}  // namespace

Result<ScriptFlow> SumRanks(const std::vector<nlohmann::json>& ranks) {
  if (ranks.empty()) {
    return Error{
        ErrorCode::kNotFound, "no DataLoader that feeds an optimizer step was seen",
        "the script must train at least one step with a torch DataLoader; give its arguments after --"};
  }
  ScriptFlow flow;
  double fast = 0;
  for (const nlohmann::json& rank : ranks) {
    if (rank.contains("error")) {
      return Error{ErrorCode::kUnavailable,
                   "the training loader was not measured: " + rank.value("error", ""),
                   "measure other data by its path: fullbore loader bench PATH"};
    }
    flow.samples_per_s += rank.value("samples_per_s", 0.0);
    flow.batches_per_s += rank.value("batches_per_s", 0.0);
    flow.worker_cores += rank.value("worker_cores", 0.0);
    flow.main_cores += rank.value("main_cores", 0.0);
    flow.worker_waits += rank.value("worker_waits", 0.0);
    const nlohmann::json other = rank.value("fast", nlohmann::json::object());
    fast += other.value("samples_per_s", 0.0);
    if (flow.fast_reason.empty()) flow.fast_reason = other.value("reason", "");
  }
  flow.ranks = static_cast<int>(ranks.size());
  const nlohmann::json& first = ranks.front();
  const auto whole = [&](const char* name) -> std::optional<int64_t> {
    const auto value = first.find(name);
    if (value == first.end() || !value->is_number_integer()) return std::nullopt;
    return value->get<int64_t>();
  };
  flow.num_workers = static_cast<int>(whole("num_workers").value_or(0));
  flow.batch_size = whole("batch_size");
  flow.dataset_samples = whole("dataset_len");
  flow.dataset = first.value("dataset", "");
  if (const auto where = first.find("where"); where != first.end() && where->is_string()) flow.where = *where;
  if (fast > 0) flow.fast_samples_per_s = fast;
  return flow;
}

namespace {

ScriptVerdict JudgeItself(const ScriptFlow& flow) {
  const int workers = flow.num_workers * flow.ranks;
  const double used = flow.worker_cores + flow.main_cores;
  if (workers == 0) {
    return {"training process",
            fmt::format("no workers: the training process itself fetches every batch, on {:.1f} core{}", used,
                        flow.ranks == 1 ? "" : "s in all"),
            flow.cores > flow.ranks ? fmt::format("num_workers={} and persistent_workers=True",
                                                  std::max(1, flow.cores / flow.ranks))
                                    : "a loader that needs less CPU: fullbore.data"};
  }
  if (used >= kFull * flow.cores) {
    return {"cores", fmt::format("the cores bind: {:.1f} of {} are used", used, flow.cores),
            "less work per sample (smaller images, cheaper transforms), or fullbore.data"};
  }
  if (flow.worker_waits > kManyWaits * workers) {
    return {"cores",
            fmt::format(
                "other programs keep the cores busy: of {} worker{}, {:.1f} had work but no core on average",
                workers, workers == 1 ? "" : "s", flow.worker_waits),
            "measure again while nothing else runs, or use fewer workers"};
  }
  if (flow.worker_cores >= kFull * workers) {
    return {"workers",
            fmt::format("the workers bind: {} use {:.1f} cores, and {:.1f} of {} cores are free", workers,
                        flow.worker_cores, flow.cores - used, flow.cores),
            fmt::format("num_workers={}", std::max(flow.num_workers + 1, flow.cores / flow.ranks))};
  }
  if (flow.main_cores >= kFull * flow.ranks) {
    return {"training process",
            "the training process binds: it takes batches over (unpickling, pinning) all the time",
            "larger samples in fewer tensors, pin_memory=False on a CPU, or fullbore.data, which hands over "
            "without copying"};
  }
  return {
      "storage",
      fmt::format("the workers wait: {} of them use {:.1f} cores; storage, or a lock in the dataset, binds",
                  workers, flow.worker_cores),
      "faster storage or more workers that wait at once; `fullbore loader bench DIR` measures the storage "
      "alone"};
}

}  // namespace

ScriptVerdict Judge(const ScriptFlow& flow) {
  ScriptVerdict verdict = JudgeItself(flow);
  constexpr double kFaster = 1.1;  // two measurements of the same loader differ by less
  const double gain = flow.samples_per_s > 0 ? flow.fast_samples_per_s.value_or(0) / flow.samples_per_s : 0;
  if (gain > kFaster) {
    verdict.next_step +=
        fmt::format("; fullbore.data.from_torch(loader) was {:.1f} times as fast just now", gain);
  }
  return verdict;
}

std::string ToTerminal(const ScriptFlow& flow, double wanted_samples_per_s, const PlotStyle& style) {
  std::string out = FormatPrintable(
      style.unicode, "fullbore loader bench: the training DataLoader of {}, alone\n", flow.script);
  out += FormatPrintable(style.unicode, "  {}{}{}, {} worker{}", flow.dataset,
                         flow.dataset_samples
                             ? fmt::format(" of {}", FormatCount(static_cast<double>(*flow.dataset_samples)))
                             : "",
                         flow.where.empty() ? "" : fmt::format(" ({})", flow.where), flow.num_workers,
                         flow.num_workers == 1 ? "" : "s");
  if (flow.batch_size) out += fmt::format(", batches of {}", *flow.batch_size);
  if (flow.ranks > 1) out += fmt::format(", {} ranks", flow.ranks);
  out += fmt::format(", {} core{}\n\n", flow.cores, flow.cores == 1 ? "" : "s");
  const double largest = std::max(flow.samples_per_s, flow.fast_samples_per_s.value_or(0));
  if (largest > 0) out += BarRow("the script's DataLoader", flow.samples_per_s, largest, "33", style);
  if (flow.fast_samples_per_s) {
    out += BarRow("the same as fullbore.data", *flow.fast_samples_per_s, largest, "36", style);
  }
  out += fmt::format("\n  {:.1f} batches/s; workers use {:.1f} cores, the training process {:.1f}\n",
                     flow.batches_per_s, flow.worker_cores, flow.main_cores);
  const ScriptVerdict verdict = Judge(flow);
  out += fmt::format("\n  {}\n  next: {}\n",
                     style.color ? "\x1b[1m" + verdict.text + "\x1b[0m" : verdict.text, verdict.next_step);
  if (!flow.fast_samples_per_s && !flow.fast_reason.empty()) {
    out += FormatPrintable(style.unicode, "  fullbore.data was not measured: {}\n", flow.fast_reason);
  }
  if (wanted_samples_per_s > 0) {
    out += fmt::format("  {} samples/s are {} than this loader alone gives\n", Rate(wanted_samples_per_s),
                       wanted_samples_per_s > flow.samples_per_s ? "more" : "less");
  }
  return out;
}

nlohmann::ordered_json ToJson(const ScriptFlow& flow, double wanted_samples_per_s) {
  const ScriptVerdict verdict = Judge(flow);
  nlohmann::ordered_json json = {
      {"schema", "fullbore.loader_bench_script/1"},
      {"script", flow.script},
      {"ranks", flow.ranks},
      {"cores", flow.cores},
      {"samples_per_s", flow.samples_per_s},
      {"batches_per_s", flow.batches_per_s},
      {"worker_cores", flow.worker_cores},
      {"main_cores", flow.main_cores},
      {"worker_waits", flow.worker_waits},
      {"num_workers", flow.num_workers},
      {"dataset", flow.dataset},
      {"verdict", {{"binds", verdict.binds}, {"text", verdict.text}, {"next_step", verdict.next_step}}}};
  if (flow.batch_size) json["batch_size"] = *flow.batch_size;
  if (flow.dataset_samples) json["dataset_samples"] = *flow.dataset_samples;
  if (!flow.where.empty()) json["where"] = flow.where;
  if (flow.fast_samples_per_s) json["fast"] = {{"samples_per_s", *flow.fast_samples_per_s}};
  if (!flow.fast_samples_per_s && !flow.fast_reason.empty()) json["fast"] = {{"reason", flow.fast_reason}};
  if (wanted_samples_per_s > 0) json["wanted_samples_per_s"] = wanted_samples_per_s;
  return json;
}

}  // namespace fullbore::loader::bench
