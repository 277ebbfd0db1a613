#include "report/testing/samples.h"

#include <cmath>

#include "base/clock.h"
#include "report/testing/made_findings.h"
#include "report/testing/made_series.h"
#include "report/testing/summary.h"

namespace fullbore::report::testing {

namespace {

using diagnose::Finding;
using record::RankInfo;
using record::Share;
using record::Stage;

constexpr int64_t kBeginNs = 5'000 * kNsPerSecond;  // the machine had been up for a while
constexpr double kGB = 1e9;

constexpr auto kWarning = diagnose::Severity::kWarning;
constexpr auto kCritical = diagnose::Severity::kCritical;

Stage TrainStage(double seconds, std::vector<std::string> command) {
  Stage stage;
  stage.id = 1;
  stage.name = "train";
  stage.command = std::move(command);
  stage.directory = "/home/ada/resnet";
  stage.begin_ns = kBeginNs;
  stage.end_ns = kBeginNs + static_cast<int64_t>(seconds * 1e9);
  stage.state = record::StageState::kEnded;
  stage.exit_status = 0;
  return stage;
}

void Add(Stage& stage, record::SeriesKey key, double per_second, double noise,
         std::function<double(double)> shape) {
  stage.series.push_back(
      MakeSeries(std::move(key), {stage.begin_ns, stage.end_ns}, per_second, noise, shape));
}

std::function<double(double)> Level(double value) {
  return [value](double) { return value; };
}

// From nothing to the value within the first seconds, as imports and first batches take.
std::function<double(double)> After(double start_s, double value) {
  return [=](double t) { return t < start_s ? 0.0 : value; };
}

void AddHost(Stage& stage, double cpu, double iowait, double used_bytes, double total_bytes) {
  Add(stage, {"cpu_utilization", "ratio", {}}, 5, 0.02, Level(cpu));
  Add(stage, {"cpu_user", "ratio", {}}, 5, 0.02, Level(cpu * 0.9));
  Add(stage, {"cpu_system", "ratio", {}}, 5, 0.004, Level(cpu * 0.1));
  Add(stage, {"cpu_iowait", "ratio", {}}, 5, 0.004, Level(iowait));
  Add(stage, {"memory_used", "bytes", {}}, 1, 1e8,
      [=](double t) { return used_bytes * (1 - 0.4 * std::exp(-t / 20)); });
  Add(stage, {"memory_total", "bytes", {}}, 1, 0, Level(total_bytes));
  Add(stage, {"disk_read", "bytes/s", {{"device", "nvme0n1"}}}, 1, 3e6,
      [](double t) { return 2.4e8 * std::exp(-t / 30) + 2e6; });
  Add(stage, {"disk_write", "bytes/s", {{"device", "nvme0n1"}}}, 1, 4e5, Level(6e5));
}

void AddGpu(Stage& stage, int gpu, double utilization, double sm, double tensor, double memory_bytes) {
  const record::Labels labels{{"gpu", std::to_string(gpu)}};
  Add(stage, {"gpu_utilization", "ratio", labels}, 5, 0.05, After(6, utilization));
  Add(stage, {"gpu_sm_active", "ratio", labels}, 5, 0.05, After(6, sm));
  Add(stage, {"gpu_tensor_active", "ratio", labels}, 5, 0.015, After(6, tensor));
  Add(stage, {"gpu_dram_active", "ratio", labels}, 5, 0.03, After(6, sm * 0.6));
  Add(stage, {"gpu_memory_used", "bytes", labels}, 1, 0, After(5, memory_bytes));
  Add(stage, {"gpu_memory_total", "bytes", labels}, 1, 0, Level(141 * kGB));
  Add(stage, {"gpu_power", "W", labels}, 1, 12, [=](double t) { return t < 6 ? 118 : 180 + 400 * sm; });
}

Sample Assemble(std::string name, std::string run_id, Stage stage, double steady_s) {
  Sample sample;
  sample.name = std::move(name);
  sample.diagnosis.run_id = run_id;
  sample.diagnosis.source = ".fullbore/runs/" + run_id + ".fbr";
  sample.diagnosis.exit_status = stage.exit_status;
  sample.diagnosis.out_of_memory = stage.out_of_memory;
  Summarise(stage, stage.begin_ns + static_cast<int64_t>(steady_s * 1e9), sample.diagnosis);
  sample.recording.id = run_id;
  sample.recording.source = "run";
  sample.recording.path = sample.diagnosis.source;
  sample.recording.wall_offset_ns = 1'795'252'000 * kNsPerSecond;  // 2026-11-21
  sample.recording.stages.push_back(std::move(stage));
  return sample;
}

void SetMachine(Sample& sample, std::map<std::string, std::string> machine) {
  sample.diagnosis.machine = machine;
  sample.recording.machine = std::move(machine);
}

const std::map<std::string, std::string> kGpuBox = {
    {"hostname", "node7"},        {"cpu_model", "AMD EPYC 9554"},   {"cores", "16"},
    {"kernel", "6.1.0-25-amd64"}, {"memory_bytes", "135000000000"}, {"gpu0", "NVIDIA H200"}};

const std::map<std::string, std::string> kTwoCores = {{"hostname", "laptop"},
                                                      {"cpu_model", "Intel Xeon Gold 6448Y"},
                                                      {"cores", "2"},
                                                      {"memory_bytes", "25276502016"}};

RankInfo GpuRank(int rank) {
  RankInfo info;
  info.rank = rank;
  info.pid = 4100 + rank;
  info.hostname = "node7";
  info.device = "cuda:" + std::to_string(rank);
  info.samples_known = true;
  info.device_activity = true;
  return info;
}

void AddLoader(RankInfo& rank) {
  record::Loader loader;
  loader.feeds_training = true;
  loader.num_workers = 2;
  loader.batch_size = 128;
  loader.prefetch_factor = 2;
  loader.dataset = "ImageFolder";
  loader.dataset_samples = 126'400;
  loader.where = "/home/ada/resnet/train.py:57";
  loader.batches = 1'840;
  loader.samples = 235'520;
  loader.fetch_ns = 720 * kNsPerSecond;
  loader.cpu_ns = 702 * kNsPerSecond;
  loader.worker_span_ns = 740 * kNsPerSecond;
  loader.worker_idle_ns = 20 * kNsPerSecond;
  rank.loaders.push_back(loader);
}

StepShape InputBoundStep(int64_t step) {
  const bool cold = step < 62;
  const double wait = cold ? 0.7 : 0.41 + 0.05 * std::sin(static_cast<double>(step) / 90);
  return {(cold ? 330 : 203) * kNsPerMs,
          {{Share::kDataWait, wait},
           {Share::kCopyExposed, 0.03},
           {Share::kHostOther, 0.01},
           {Share::kLaunch, 0.01},
           {Share::kCompute, 1}},
          128};
}

}  // namespace

Sample InputBound() {
  Stage stage = TrainStage(390, {"python", "train.py", "--epochs", "2", "--data", "/data/photos"});
  AddGpu(stage, 0, 0.61, 0.47, 0.12, 31 * kGB);
  AddHost(stage, 0.131, 0.004, 46 * kGB, 135 * kGB);
  Add(stage, {"process_cpu", "cores", {{"role", "loader"}}}, 1, 0.05, After(5, 1.94));
  Add(stage, {"process_cpu", "cores", {{"role", "trainer"}}}, 1, 0.04, Level(0.31));
  Add(stage, {"process_memory", "bytes", {{"role", "loader"}}}, 1, 1e7, After(5, 3.1 * kGB));
  Add(stage, {"process_memory", "bytes", {{"role", "trainer"}}}, 1, 1e7, Level(5.2 * kGB));
  RankInfo rank = GpuRank(0);
  Noise noise(7);
  AddSteps(rank, {stage.begin_ns + 5 * kNsPerSecond, stage.end_ns}, InputBoundStep, noise);
  AddLoader(rank);
  rank.hot_lines = {
      {Share::kDataWait, "/home/ada/resnet/train.py", 74, "main", "for images, labels in loader:", 3120},
      {Share::kCompute, "/home/ada/resnet/train.py", 81, "main", "loss = criterion(model(images), labels)",
       2240},
      {Share::kCompute, "/home/ada/resnet/train.py", 82, "main", "loss.backward()", 1180},
      {Share::kCopyExposed, "/home/ada/resnet/train.py", 79, "main", "images = images.to(device)", 230},
      {Share::kHostOther, "/home/ada/resnet/log.py", 12, "write", "self.file.flush()", 75}};
  stage.ranks.push_back(std::move(rank));
  stage.messages.push_back({stage.begin_ns + 9 * kNsPerSecond, record::Severity::kWarning, "nvml",
                            "NVLink counters are not supported on this device; they are left out"});
  const Finding verdict = TooFewWorkers(stage);

  Sample sample = Assemble("input-bound", "2026-11-21-0915-train", std::move(stage), 26);
  SetMachine(sample, kGpuBox);
  diagnose::Diagnosis& d = sample.diagnosis;
  d.warmup_why = "the first 62 steps took 330 ms each, the others 203 ms: change point at step 62";
  d.findings = {verdict, NoTensorCores(), PageableCopies()};
  d.would_not_help = {{"a faster disk", "the page cache serves everything"},
                      {"a larger batch", "time per image is flat from 96"}};
  d.not_judged = {{"comm-bound", "one rank", "a run on several ranks"}};
  d.facts = {{"torch", "\"2.13.0+cu126\""}, {"model", "\"ResNet-50\""},         {"parameters", "25557032"},
             {"precision", "\"fp32\""},     {"batch_shape", "[128,3,224,224]"}, {"optimizer", "\"SGD\""},
             {"cudnn_benchmark", "false"}};
  d.memory = {0,
              141 * kGB,
              {{"weights", 0.1 * kGB, {}, {{"float32", 0.1 * kGB}}},
               {"gradients", 0.1 * kGB, {}, {{"float32", 0.1 * kGB}}},
               {"states", 0.1 * kGB, {{"momentum_buffer", 0.1 * kGB}}, {{"float32", 0.1 * kGB}}},
               {"activations", 26 * kGB},
               {"fragments", 4 * kGB},
               {"outside", 0.7 * kGB},
               {"free", 110 * kGB}}};
  d.messages = {"nvml: NVLink counters are not supported on this device; they are left out"};
  return sample;
}

Sample Healthy() {
  Stage stage = TrainStage(95, {"python3", "train.py"});
  AddHost(stage, 0.97, 0.001, 3.1 * kGB, 25.3 * kGB);
  Add(stage, {"process_cpu", "cores", {{"role", "trainer"}}}, 1, 0.05, Level(1.86));
  RankInfo rank;
  rank.pid = 812;
  rank.hostname = "laptop";
  rank.device = "cpu";
  rank.samples_known = true;
  Noise noise(11);
  AddSteps(
      rank, {stage.begin_ns + 3 * kNsPerSecond, stage.end_ns},
      [](int64_t step) {
        return StepShape{(step < 3 ? 700 : 412) * kNsPerMs,
                         {{Share::kDataWait, 0.012},
                          {Share::kBackward, 0.6},
                          {Share::kOptimizer, 0.03},
                          {Share::kHostOther, 0.006},
                          {Share::kForward, 1}},
                         32};
      },
      noise);
  stage.ranks.push_back(std::move(rank));

  Sample sample = Assemble("healthy", "2026-11-21-1102-train", std::move(stage), 6);
  SetMachine(sample, kTwoCores);
  Finding healthy = FindingOf(
      "healthy", diagnose::Severity::kInfo, 0.98,
      "Nothing holds this run back: 98 % of each step is training itself, and both cores are busy.");
  healthy.evidence = {{"CPU in use", 0.97, "ratio", "proc", "cpu_utilization", {}, {}}};
  healthy.fix = {"The processor is the ceiling now: more cores or a GPU would move it."};
  sample.diagnosis.findings = {healthy};
  sample.diagnosis.would_not_help = {
      {"more loader workers", "the loop waits 1 % of the time, and no core is idle"}};
  sample.diagnosis.not_judged = {{"low-activity", "no GPU was seen", "a machine with an NVIDIA GPU"}};
  sample.diagnosis.facts = {
      {"torch", "\"2.13.0+cpu\""}, {"model", "\"SmallNet\""}, {"precision", "\"fp32\""}};
  return sample;
}

Sample Straggler() {
  Stage stage = TrainStage(240, {"torchrun", "--nproc-per-node", "8", "train.py"});
  AddHost(stage, 0.44, 0.01, 212 * kGB, 540 * kGB);
  Noise noise(5);
  for (int index = 0; index < 8; ++index) {
    const bool late = index == 5;
    AddGpu(stage, index, 0.97, late ? 0.71 : 0.55, late ? 0.33 : 0.26, 74 * kGB);
    RankInfo rank = GpuRank(index);
    AddSteps(
        rank, {stage.begin_ns + 8 * kNsPerSecond, stage.end_ns},
        [late](int64_t step) {
          const double slow_start = step < 20 ? 1.8 : 1;
          return StepShape{static_cast<int64_t>(311e6 * slow_start),
                           {{Share::kCommExposed, late ? 0.04 : 0.27},
                            {Share::kCopyExposed, 0.01},
                            {Share::kDataWait, late ? 0.19 : 0.01},
                            {Share::kCompute, 1}},
                           64,
                           0.01};
        },
        noise);
    stage.ranks.push_back(std::move(rank));
  }
  Sample sample = Assemble("straggler", "2026-11-21-1340-train", std::move(stage), 20);
  std::map<std::string, std::string> machine = kGpuBox;
  machine["cores"] = "96";
  for (int gpu = 0; gpu < 8; ++gpu) machine["gpu" + std::to_string(gpu)] = "NVIDIA H100 80GB HBM3";
  SetMachine(sample, machine);
  Finding late = FindingOf(
      "straggler", kCritical, 0.23,
      "Rank 5 is late in 94 % of the steps, by 72 ms (23 % of the step): it waits for its data while "
      "the others wait for it.");
  late.evidence = {{"steps in which rank 5 came last", 0.94, "ratio", "hook", "", {}, {}},
                   {"how late it came", 72, "ms", "hook", "", {}, {}}};
  late.fix = {
      "Look at what else runs on rank 5's host cores, and give its loader as many as the others have."};
  late.where = {{"/srv/train/train.py", 112, "for batch in loader:", 0.19}};
  late.speedup = {1.27, 1.22, 1.3};
  late.method = "every rank's steps replayed with rank 5's wait of the others' length";
  Finding comm =
      FindingOf("comm-bound", kWarning, 0.24,
                "Waiting for gradients of other ranks takes 24 % of the step, most of it for rank 5.");
  comm.fix = {"Settle rank 5 first."};
  sample.diagnosis.findings = {late, comm};
  sample.diagnosis.facts = {{"torch", "\"2.13.0+cu126\""},
                            {"model", "\"ViT-L/16\""},
                            {"precision", "\"bf16\""},
                            {"world_size", "8"}};
  return sample;
}

Sample NoTraining() {
  Stage stage = TrainStage(64, {"./convert.sh", "photos/"});
  stage.name = "prepare";
  AddHost(stage, 0.88, 0.07, 6.4 * kGB, 25.3 * kGB);
  Add(stage, {"process_cpu", "cores", {{"role", "other"}}}, 1, 0.05, Level(1.7));
  Sample sample = Assemble("no-training", "2026-11-21-0850-convert", std::move(stage), 0);
  SetMachine(sample, kTwoCores);
  sample.diagnosis.not_judged = {
      {"input-bound", "no Python process imported torch", "a command that trains"}};
  return sample;
}

Sample OutOfMemory() {
  Sample sample = Healthy();
  sample.name = "out-of-memory";
  Stage& stage = sample.recording.stages.front();
  stage.exit_status = sample.diagnosis.exit_status = 137;
  stage.out_of_memory = sample.diagnosis.out_of_memory = true;
  Finding memory =
      FindingOf("host-memory", kCritical, 0,
                "The loader's workers grew to 23.9 of 25.3 GB, and the kernel killed the largest process.");
  memory.evidence = {{"memory in use", 23.9 * kGB, "bytes", "proc", "memory_used", {}, {}}};
  memory.fix = {
      "Use fewer workers, and keep the samples in one shared array instead of a list of Python objects."};
  memory.change = "DataLoader(num_workers=2)";
  sample.diagnosis.findings = {memory};
  sample.diagnosis.messages = {"recorder: the kernel killed pid 830 (loader worker) for memory",
                               "hook: rank 0 ended without saying goodbye"};
  return sample;
}

Sample TwoStages() {
  Sample sample = InputBound();
  sample.name = "two-stages";
  sample.diagnosis.stage = "train";
  sample.diagnosis.run_id = sample.recording.id = "2026-11-21-0915-photos";
  Stage prepare = NoTraining().recording.stages.front();
  prepare.id = 0;
  const int64_t shift_ns = -100 * kNsPerSecond;
  prepare.begin_ns += shift_ns;
  prepare.end_ns += shift_ns;
  sample.recording.stages.insert(sample.recording.stages.begin(), std::move(prepare));
  return sample;
}

// A kernel, then one that waits for its launch behind a synchronisation.
record::StepTimeline TimelineOf(const record::Step& step) {
  record::StepTimeline line;
  line.begin_ns = step.end_ns - step.wall_ns;
  line.end_ns = step.end_ns;
  const auto at = [&](int64_t ms) { return line.begin_ns + ms * kNsPerMs; };
  line.names = {"", "gemm", "aten::item", "cudaStreamSynchronize", "cudaLaunchKernel"};
  line.shares = {{at(0), at(10), Share::kCompute},
                 {at(10), at(12), Share::kSync},
                 {at(12), at(20), Share::kLaunch},
                 {at(20), line.end_ns, Share::kCompute}};
  line.tracks = {
      {"stream 0/7",
       true,
       {{at(0), at(10), 1, 1, 0, Share::kCompute}, {at(20), line.end_ns, 1, 40, 0, Share::kCompute}}},
      {"thread 4711 (main)",
       false,
       {{at(2), at(12), 2, 1, 0, std::nullopt},
        {at(19), at(20), 4, 1, 0, Share::kLaunch},
        {at(3), at(11), 3, 1, 1, Share::kSync}}}};
  return line;
}

Sample OneStepTrace() {
  Stage stage;
  stage.name = "host.pt.trace.json";
  stage.begin_ns = kBeginNs;
  stage.end_ns = kBeginNs + 41 * kNsPerMs;
  stage.state = record::StageState::kEnded;
  RankInfo rank = GpuRank(0);
  rank.samples_known = false;
  Noise noise(3);
  AddSteps(
      rank, {stage.begin_ns, stage.end_ns},
      [](int64_t) {
        return StepShape{
            38 * kNsPerMs, {{Share::kLaunch, 0.3}, {Share::kSync, 0.04}, {Share::kCompute, 1}}, 0};
      },
      noise);
  rank.timeline = TimelineOf(rank.steps.front());
  stage.ranks.push_back(std::move(rank));
  stage.messages.push_back({std::nullopt, record::Severity::kInfo, "ingest",
                            "the traces are taken from 'logs/plugins/profile/2026_11_21_09_15_00'"});
  Sample sample = Assemble("one-step-trace", "host.pt.trace.json", std::move(stage), 0);
  sample.diagnosis.findings = {
      FindingOf("launch-bound", kWarning, 0.3, "The GPU waits for the host's launches 30 % of the time.")};
  sample.diagnosis.findings[0].fix = {
      "Capture the step in a CUDA graph: torch.compile(mode=\"reduce-overhead\")."};
  return sample;
}

Sample NotJudged() {
  using enum fitness::Conclusion;
  Sample sample = OneStepTrace();
  sample.name = "not-judged";
  sample.diagnosis.findings.clear();
  sample.diagnosis.fitness.conditions = {
      {"launches-without-kernels",
       "544 of 546 launches ran nothing (a CUDA graph is being captured).",
       0.996,
       "ratio",
       {kAnything, kIdleTime, kRates},
       "Record the replays: torch.profiler.schedule(wait=...)."},
      {"breaks-off",
       "The file breaks off at byte 4,711: only what precedes it is judged.",
       4711,
       "bytes",
       {kGains, kWhatIf},
       "Copy it again."},
      {"work-known", "The work of 85 % of the device's time is known.", 0.85, "ratio", {}, ""}};
  sample.diagnosis.notes = {"the traces are taken from 'logs/plugins/profile/2026_11_21_09_15_00'"};
  return sample;
}

Sample HostileTexts() {
  Sample sample = InputBound();
  sample.name = "hostile-texts";
  const std::string bad =
      "</script><script>document.title='owned'</script><img src=x "
      "onerror=alert(1)>\x1b[2J\xff\u2028\u009b2J\u202e&amp;";
  diagnose::Diagnosis& d = sample.diagnosis;
  d.findings[0].title += bad;
  d.findings[0].change = bad;
  d.findings[0].fix = {bad};
  d.findings[0].where[0].text = bad;
  d.findings[0].evidence[0].what = bad;
  d.findings[1].id = bad;
  d.run_id = bad;
  d.messages.push_back(bad);
  d.machine["hostname"] = bad;
  d.facts[bad] = "\"" + bad + "\"";
  d.would_not_help.push_back({bad, bad});
  d.not_judged.push_back({bad, bad, bad});
  d.fitness.conditions = {{"noise", bad, 0, bad, {}, bad}, {bad, bad, 0, bad, {}, ""}};
  d.notes.push_back(bad);
  Stage& stage = sample.recording.stages.front();
  stage.command.push_back(bad);
  stage.ranks[0].hot_lines[0].text = bad;
  stage.ranks[0].hot_lines[0].file = bad;
  stage.messages[0].text = bad;
  stage.series[0].key.labels["gpu"] = bad;
  stage.ranks[0].timeline = TimelineOf(stage.ranks[0].steps.front());
  stage.ranks[0].timeline->names[1] = bad;
  stage.ranks[0].timeline->tracks[0].name = bad;
  return sample;
}

std::vector<Sample> AllSamples() {
  return {InputBound(), Healthy(),      Straggler(), NoTraining(),  OutOfMemory(),
          TwoStages(),  OneStepTrace(), NotJudged(), HostileTexts()};
}

}  // namespace fullbore::report::testing
