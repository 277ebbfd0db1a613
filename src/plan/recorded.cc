#include "plan/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/command_line.h"
#include "base/text.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/noise.h"
#include "explain/diagnose/recorded_pipeline.h"
#include "explain/diagnose/unslowed.h"
#include "explain/diagnose/view_fitness.h"
#include "explain/replay/change/changes.h"
#include "explain/replay/observer.h"
#include "explain/replay/predict.h"
#include "explain/replay/ranks.h"

namespace fullbore::plan {

using diagnose::View;
using record::Metric;
using record::Share;
using record::StepGraph;
using replay::Outlook;

namespace {

constexpr size_t kMostSteps = 200;  // of the pipeline: more only repeat them

std::string CommandOf(const record::Stage& stage) {
  return stage.command.empty() ? "COMMAND" : ShellLine(stage.command);
}

double NumberIn(const std::map<std::string, std::string>& facts, const char* name) {
  const auto found = facts.find(name);
  return found == facts.end() ? 0 : ParseDouble(found->second).value_or(0);
}

// "cuda:0 (Tesla T4)" of a run; of a trace the fact is the name itself.
std::string DeviceNameOf(const View& view) {
  if (view.ComputesOnCpu()) return "cpu";
  if (const auto gpu = view.Fact("gpu")) return *gpu;
  const std::string device = view.Fact("device").value_or("");
  const size_t open = device.find('(');
  if (open != std::string::npos && device.back() == ')')
    return device.substr(open + 1, device.size() - open - 2);
  const auto gpu = view.recording().machine.find("gpu0");
  return gpu == view.recording().machine.end() ? "" : gpu->second;
}

Cores CoresOf(const View& view) {
  Cores cores{view.cores(), 0};
  const double logical = NumberIn(view.recording().machine, "cores_logical");
  const double physical = NumberIn(view.recording().machine, "cores_physical");
  if (logical > 0 && physical > 0) cores.threads_per_core = std::max(1.0, logical / physical);
  return cores;
}

// Fetches and steps as they would be on cores of their own: without waiting for one, and without another thread on the
// same core of the chip. Where all cores were busy, what they did is what they can.
void TakeCores(const View& view, Recorded& recorded, replay::Pipeline& loader) {
  const auto* const about = view.lead().TrainingLoader();
  const double fetches = static_cast<double>(std::max<int64_t>(1, about->batches));
  const double waited_ns = static_cast<double>(about->run_delay_ns) / fetches;
  const double cpu_ns = loader.train_cpu_ns + loader.batches_per_step * loader.fetch_cpu_ns;
  const double ranks = static_cast<double>(view.RanksBesideEachOther());
  const double busy = std::min(recorded.cores.logical, ranks * cpu_ns / std::max(1.0, recorded.step_ns));
  double slowed = 1;
  if (recorded.cores.logical > 0 && busy > 0) {
    const double reached = std::min(Capacity(recorded.cores, busy, Outlook::kExpected),
                                    replay::kCoresReached * Capacity(recorded.cores, Outlook::kExpected));
    slowed = std::max(1.0, busy / reached);
  }
  const double shorter_ns = waited_ns + loader.fetch_cpu_ns * (1 - 1 / slowed);
  const double mean_ns = std::accumulate(loader.fetch_ns.begin(), loader.fetch_ns.end(), 0.0) /
                         static_cast<double>(loader.fetch_ns.size());
  const double left = mean_ns > 0 ? std::clamp(1 - shorter_ns / mean_ns, 0.05, 1.0) : 1;
  for (double& ns : loader.fetch_ns) ns *= left;
  loader.fetch_cpu_ns /= slowed;
  loader.train_cpu_ns /= slowed;
}

// As many steps as are needed, by quantiles, in an order that mixes them.
std::vector<double> Thinned(std::vector<double> values) {
  if (values.size() <= kMostSteps) return values;
  std::ranges::sort(values);
  std::vector<double> some;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  constexpr size_t kStride = 77;  // has no divisor in common with kMostSteps
  for (size_t i = 0; i < kMostSteps; ++i) {
    const size_t quantile = i * kStride % kMostSteps;
    some.push_back(values[(2 * quantile + 1) * values.size() / (2 * kMostSteps)]);
  }
  const double kept = std::accumulate(some.begin(), some.end(), 0.0) / static_cast<double>(some.size());
  for (double& ns : some) ns *= kept > 0 ? mean / kept : 1;
  return some;
}

void TakeLoader(const View& view, Recorded& recorded) {
  auto loader = diagnose::RecordedPipeline(view);
  if (!loader) return;
  TakeCores(view, recorded, *loader);
  // By the device's own clock, a step takes at least as long as the device worked for it.
  std::vector<double> consume_ns;
  for (size_t i = 0; i < loader->consume_ns.size(); ++i)
    consume_ns.push_back(
        std::max(loader->consume_ns[i], static_cast<double>(view.lead().steady[i]->device_ns)));
  loader->consume_ns = Thinned(std::move(consume_ns));
  recorded.loaded_by = loader->workers;
  loader->cores = loader->cores_alone = 0;
  recorded.loader = std::move(loader);
}

// Bytes of the gradients that the recorded collectives carry in a step.
double ExchangedBytes(const StepGraph& graph) {
  if (graph.step_ends.size() < 2) return 0;
  double bytes = 0;
  for (uint32_t i = graph.step_ends.front(); i < graph.step_ends.back(); ++i) {
    if (replay::IsOfGradients(graph.nodes[i]))
      bytes += static_cast<double>(std::max<int64_t>(0, graph.nodes[i].bytes));
  }
  return bytes / static_cast<double>(graph.step_ends.size() - 1);
}

double BytesOfType(const std::string& type) {
  if (type == "float16" || type == "bfloat16") return 2;
  return type == "float64" ? 8 : 4;
}

void TakeGradients(const View& view, Recorded& recorded) {
  if (!recorded.graphs.empty()) recorded.gradient_bytes = ExchangedBytes(recorded.graphs.front());
  if (recorded.gradient_bytes > 0) return;
  const double parameters = ParseDouble(view.Fact("parameters").value_or("")).value_or(0);
  recorded.gradient_bytes = parameters * BytesOfType(view.Fact("parameter_dtype").value_or(""));
}

// Of the device's time, what matrix kernels take whose work is not known.
double UnknownWork(const StepGraph& graph) {
  const auto of_device = [](const StepGraph::Node& node) {
    return node.work == record::Work::kDevice && (record::Bit(node.lane) & record::kComputeLanes) != 0;
  };
  const auto unknown = [&](const StepGraph::Node& node) {
    const bool matrix = node.lane == record::Lane::kMatmul || node.lane == record::Lane::kMatmulTensor ||
                        node.lane == record::Lane::kAttention;
    return of_device(node) && matrix && graph.tasks[node.task].flops <= 0;
  };
  const double all_ns = replay::PerStepNs(graph, of_device);
  return all_ns > 0 ? replay::PerStepNs(graph, unknown) / all_ns : 1;
}

// Where no operators were recorded, nothing says in which pass an operation was launched: then it is taken to train.
bool Trains(const StepGraph& graph) {
  if (graph.operator_start_ns <= 0 || !graph.optimizer.empty()) return true;
  return std::ranges::any_of(graph.nodes, [](const StepGraph::Node& node) {
    return node.work == record::Work::kDevice && node.phase != record::Phase::kForward &&
           node.phase != record::Phase::kValidation;
  });
}

void TakeGraphs(const View& view, Recorded& recorded) {
  if (!view.HasSteps()) return;
  const StepGraph* graph = diagnose::ReplayableGraph(view.lead());
  if (graph == nullptr) return;
  for (const StepGraph* each : replay::RanksAround(*graph, view.lead().graphs))
    recorded.graphs.push_back(*each);
  recorded.unknown_work = UnknownWork(*graph);
  recorded.trains = Trains(*graph);
  recorded.device = roofline::DeviceMeant(graph->device);  // null for a part of one, whatever its name
  if (recorded.device_name.empty()) recorded.device_name = graph->device;
}

void TakeProfiler(Recorded& recorded) {
  if (recorded.graphs.empty() || recorded.of_window) return;
  const StepGraph& graph = recorded.graphs.front();
  const double now_ns = replay::StepNs(graph);
  if (!replay::IsWatched(graph) || now_ns <= 0) return;
  const auto left = [&](Outlook outlook) {
    return std::min(1.0, replay::StepNs(replay::Unwatched(graph, outlook)) / now_ns);
  };
  recorded.profiler_low = left(Outlook::kHopeful);
  recorded.profiler_expected = left(Outlook::kExpected);
}

std::optional<double> MostOfCommand(const View& view) {
  std::optional<double> most;
  for (const record::Series& series : view.stage().series) {
    const auto owner = series.key.labels.find("owner");
    const bool ours = owner != series.key.labels.end() && owner->second == "command";
    if (!IsOf(series.key, Metric::kGpuProcessMemory) || !ours) continue;
    most = std::max(most, view.Max(Metric::kGpuProcessMemory, series.key.labels));
  }
  if (most.value_or(0) > 0) return most;
  return view.Max(Metric::kGpuMemoryUsed);
}

std::optional<double> OfRole(const View& view, const char* role, Metric metric, Metric otherwise) {
  const auto bytes = view.Mean(metric, {{"role", role}});
  return bytes ? bytes : view.Mean(otherwise, {{"role", role}});
}

void TakeNeeds(const View& view, Recorded& recorded) {
  const double samples_per_s = recorded.batch * static_cast<double>(recorded.gpus) / recorded.step_ns * 1e9;
  if (!recorded.on_cpu) recorded.device_memory_bytes = MostOfCommand(view);
  const double ranks = static_cast<double>(view.RanksBesideEachOther());
  if (const auto bytes = OfRole(view, "trainer", Metric::kProcessPss, Metric::kProcessMemory))
    recorded.trainer_bytes = *bytes / ranks;
  const double workers = ranks * static_cast<double>(recorded.loaded_by);
  if (const auto bytes = OfRole(view, "loader", Metric::kProcessPss, Metric::kProcessMemory);
      bytes && workers > 0)
    recorded.worker_bytes = *bytes / workers;
  const char* role = recorded.loaded_by > 0 ? "loader" : "trainer";
  auto read = view.Sum(Metric::kLoaderRead);
  if (!read) read = view.Mean(Metric::kProcessIoReadCalls, {{"role", role}});
  if (read && samples_per_s > 0) recorded.read_bytes_per_sample = *read / samples_per_s;
  const record::Loader* loader = view.lead().TrainingLoader();
  if (loader != nullptr && loader->dataset_samples.value_or(0) > 0)
    recorded.epoch_samples = loader->dataset_samples;
}

int64_t SamplesOf(const record::RankInfo& rank) {
  int64_t in_steps = 0, in_windows = 0;
  for (const record::Step& step : rank.steps) in_steps += step.samples;
  for (const record::StepWindow& window : rank.windows) in_windows += window.samples;
  return std::max(in_steps, in_windows);
}

void TakeSteps(const View& view, double samples_per_step, Recorded& recorded) {
  const diagnose::RankView& lead = view.lead();
  recorded.step_ns = lead.MeanStepNs();
  recorded.wait_ns = lead.Ratio(Share::kDataWait) * recorded.step_ns;
  recorded.comm_ns = lead.Ratio(Share::kCommExposed) * recorded.step_ns;
  recorded.backward_ns = lead.Ratio(Share::kBackward) * recorded.step_ns;
  recorded.batch = samples_per_step;
  if (lead.info->samples_known && lead.samples > 0 && lead.steps > 0)
    recorded.batch = static_cast<double>(lead.samples) / static_cast<double>(lead.steps);
  const fitness::Doubt doubt = diagnose::DoubtOf(view);
  const double open = std::max(doubt.of_mean_step, 0.02);
  recorded.spread = {1 - std::min(0.5, open), 1, 1 + open};
  if (recorded.batch > 0) {
    int64_t samples = 0;
    for (const record::RankInfo& rank : view.stage().ranks) samples += SamplesOf(rank);
    if (samples > 0) recorded.run_samples = samples;
  }
}

int64_t GpusOf(const View& view) {
  constexpr int64_t kMost = 1 << 20;
  const auto ranks = static_cast<int64_t>(view.ranks().size());
  const auto world = static_cast<int64_t>(ParseInt(view.Fact("world_size").value_or("")).value_or(1));
  int64_t group = 1;
  if (view.lead().info->tables) {
    for (const record::CollectiveStats& stats : view.lead().info->tables->collectives)
      if (stats.of_gradients) group = std::max(group, stats.group_size.value_or(1));
  }
  return std::clamp<int64_t>(std::max({ranks, world, group}), 1, kMost);
}

int64_t MachinesOf(const View& view) {
  const size_t here = std::max<size_t>(1, view.RanksOnLeadsMachine());
  return static_cast<int64_t>(std::max<size_t>(1, view.ranks().size() / here));
}

// Of a run whose other machines' files are missing: its cores, samples and memory are those of a part.
std::string WhyIncomplete(const View& view) {
  const int64_t gpus = GpusOf(view);
  const auto here = static_cast<int64_t>(view.ranks().size());
  if (view.recording().source != "run" || here >= gpus) return "";
  return fmt::format("{} ranks trained, of which {} is here: record it on each machine with one --run ID",
                     gpus, here);
}

// Why nothing follows from it; empty if something does.
std::string WhyNothing(const View& view) {
  const bool steps = view.HasSteps() && !view.sampling() && view.lead().MeanStepNs() > 0;
  if (!steps) return "no steps were seen in it";
  const fitness::Fitness fitness = diagnose::FitnessOf(view);
  return fitness.CanBeJudged() ? WhyIncomplete(view) : fitness.Refusal();
}

// What limits the rates of a recording that tells something: too few steps, say.
void SayWhatLimitsRates(const View& view, Recorded& recorded) {
  const fitness::Fitness fitness = diagnose::FitnessOf(view);
  const fitness::Condition* limit = fitness.WhyNot(fitness::Conclusion::kRates);
  if (limit == nullptr) return;
  recorded.not_told.push_back({"how fast it is in the long run", limit->says + " " + limit->mend, ""});
}

void TakeMachine(const View& view, Recorded& recorded) {
  recorded.model = view.Fact("model").value_or("");
  recorded.on_cpu = view.ComputesOnCpu();
  recorded.device_name = DeviceNameOf(view);
  recorded.device = recorded.on_cpu ? nullptr : roofline::DeviceMeant(recorded.device_name);
  recorded.cores = CoresOf(view);
  recorded.gpus = GpusOf(view);
  recorded.machines = MachinesOf(view);
}

// Of steps under the profiler: they become as long as the others.
void TakeWindow(const record::Recording& window, Recorded& recorded) {
  const record::Recording unslowed = diagnose::Unslowed(window, recorded.step_ns);
  if (const record::Stage* seen = diagnose::JudgedStage(unslowed))
    TakeGraphs(View(unslowed, *seen), recorded);
  recorded.of_window = true;
}

void SayWhatIsMissing(const View& view, Recorded& recorded) {
  const bool run = view.recording().source == "run";
  const std::string run_it = "fullbore run -- " + recorded.command;
  const auto say = [&](std::string what, std::string why, std::string command) {
    recorded.not_told.push_back({std::move(what), std::move(why), std::move(command)});
  };
  if (recorded.batch == 0)
    say("samples per second", "the recording does not count samples: steps stand in their place",
        "fullbore plan --batch N ..., or " + run_it);
  if (!run && !recorded.on_cpu)
    say("what the loader can deliver, and whether it fits another device",
        "a trace does not hold its work, nor the memory: rows hold as far as it keeps up, and fits", run_it);
  if (run && !recorded.loader)
    say("what the loader can deliver", "its fetches were not recorded: rows hold as far as it keeps up", "");
  if (run && !recorded.on_cpu && !recorded.device_memory_bytes)
    say("whether it fits another device", "the device's memory was not recorded: fullbore doctor says why",
        "");
  if (recorded.on_cpu)
    say("devices",
        "its steps ran on the CPU, which tells nothing of a device: record it on a machine that has one",
        "fullbore run --windows 4@100 -- " + recorded.command);
}

}  // namespace

Cores Recorded::CoresWith(int64_t devices) const {
  const int64_t in_one = std::max<int64_t>(1, gpus / machines);
  const int64_t taken = machines == 1 ? 1 : (devices + in_one - 1) / in_one;
  return {cores.logical * static_cast<double>(taken), cores.threads_per_core};
}

replay::Ranks Recorded::ranks(std::vector<const StepGraph*>& room) const {
  room.clear();
  for (const StepGraph& graph : graphs) room.push_back(&graph);
  return replay::Ranks(room);
}

Recorded RecordedOf(const record::Recording& recording, const record::Recording* window,
                    double samples_per_step) {
  Recorded recorded;
  recorded.id = recording.id;
  const record::Stage* stage = diagnose::JudgedStage(recording);
  if (stage == nullptr) {
    recorded.refusal = "nothing was recorded";
    return recorded;
  }
  recorded.command = CommandOf(*stage);
  const View view(recording, *stage);
  recorded.refusal = WhyNothing(view);
  if (!recorded.refusal.empty()) return recorded;
  TakeMachine(view, recorded);
  TakeSteps(view, samples_per_step, recorded);
  TakeLoader(view, recorded);
  if (window != nullptr)
    TakeWindow(*window, recorded);
  else
    TakeGraphs(view, recorded);
  TakeProfiler(recorded);
  TakeGradients(view, recorded);
  TakeNeeds(view, recorded);
  SayWhatLimitsRates(view, recorded);
  SayWhatIsMissing(view, recorded);
  return recorded;
}

}  // namespace fullbore::plan
