// thread-oversubscription: the threads that compute outnumber the cores: those of all processes of the command
// together, or of one process beside loader workers or other programs that want the same cores. At the end of each
// operation all threads of a pool wait for the last one. When that one is not on a core, the others spin on theirs, and
// keep it away for longer: the cores are full of work that nobody needs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/recorded_pipeline.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

// The pools of the processes that train beside each other.
struct Pools {
  int64_t processes = 0;
  int64_t threads = 0;
  int64_t largest = 0;
};

Pools PoolsBeside(const View& view) {
  Pools pools;
  for (const RankView& rank : view.ranks()) {
    const auto fact = rank.info->facts.find("torch_threads");
    if (!view.IsBesideLead(rank) || fact == rank.info->facts.end()) continue;
    const int64_t threads = ParseInt(fact->second).value_or(0);
    if (threads < 1) continue;
    ++pools.processes;
    pools.threads += threads;
    pools.largest = std::max(pools.largest, threads);
  }
  return pools;
}

// Whether threads that wait for the others of their pool keep their core. GNU's OpenMP, which PyTorch brings,
// gives up soon where the pool alone has more threads than there are cores.
bool IdleThreadsSpin(const View& view, const Pools& pools) {
  const std::string policy = view.Fact("omp_wait_policy").value_or("");
  const bool passive = policy == "passive" || policy == "PASSIVE";
  return !passive && view.Fact("gomp_spincount") != "0" && view.Fact("kmp_blocktime") != "0" &&
         static_cast<double>(pools.largest) <= view.cores();
}

// What the threads of the training do, and what else wants the cores; in threads, on average.
struct Load {
  double running = 0;          // of the training, on a core
  double waiting = 0;          // of it, for a core
  double loaders = 0;          // of loader workers: on a core or waiting for one
  double others = 0;           // cores that other programs use
  double own = 0;              // threads of the training process beside its pool: a producer of its own
  std::optional<double> spin;  // the part of the training's CPU time in which it spins

  double Queued() const { return running + waiting > 0 ? waiting / (running + waiting) : 0; }
  double Wanted() const { return running + waiting; }
  double Beside() const { return loaders + others + own; }
  bool IsAmongOthers() const { return others > loaders + own; }  // whose doing it mostly is
  bool Spins() const { return spin.value_or(0) >= kSpinCounts; }
};

std::optional<Load> LoadOf(const View& view, const Pools& pools) {
  const record::Labels trainers = {{"role", "trainer"}}, loaders = {{"role", "loader"}};
  const auto running = view.Mean(Metric::kProcessCpu, trainers);
  if (!running) return std::nullopt;
  Load load;
  load.running = *running;
  load.waiting = view.Mean(Metric::kProcessRunDelay, trainers).value_or(0);
  load.loaders = view.Mean(Metric::kProcessCpu, loaders).value_or(0) +
                 view.Mean(Metric::kProcessRunDelay, loaders).value_or(0);
  load.others = view.CoresOfOthers().value_or(0);
  load.spin = view.Mean(Metric::kProcessSpin, trainers);
  load.own = std::max(0.0, load.Wanted() - static_cast<double>(pools.threads));
  return load;
}

// Threads for each process. What others use is not there: a pool as large as the machine, one of whose threads waits
// for such a program or for a loader's worker, is slower than one that leaves it a core.
int64_t FittingThreads(const View& view, const Pools& pools, const Load& load) {
  const double left = view.cores() - std::round(load.Beside());
  return std::max<int64_t>(1, static_cast<int64_t>(left / static_cast<double>(pools.processes)));
}

// "while other programs use 0.98 of 2 cores" where they crowd the pool: what is advised then is right for that moment.
// A pool of as many threads as cores is faster than a smaller one once it is alone; and a thread of its own that waits
// for a core because of them is less in its way then.
std::string OnlyBesideOthers(const View& view, const Pools& pools, const Load& load) {
  Load alone = load;
  alone.others = 0;
  if (!load.IsAmongOthers() && pools.largest > FittingThreads(view, pools, alone)) return "";
  return fmt::format("while other programs use {} of {} cores", FormatCount(load.others),
                     FormatCount(view.cores()));
}

std::string Described(const Pools& pools, bool beside, const Load& load) {
  if (beside) {
    const char* what = load.own >= std::max(load.loaders, load.others) ? "a thread of its own"
                       : load.loaders >= load.others                   ? "loader workers"
                                                                       : "other programs";
    return fmt::format("{} threads of one process compute beside {} that want the same cores", pools.threads,
                       what);
  }
  if (pools.processes == 1) return fmt::format("{} threads of one process compute", pools.threads);
  const bool equal = pools.threads == pools.processes * pools.largest;
  return equal ? fmt::format("{} processes compute with {} threads each", pools.processes, pools.largest)
               : fmt::format("{} processes compute with {} threads", pools.processes, pools.threads);
}

// The variable counts unless the script itself asked for a number: then only the call does.
bool AskedByScript(const View& view) {
  const auto used = view.Fact("torch_threads"), asked = view.Fact("omp_num_threads");
  if (asked) return ParseInt(*used).value_or(0) > ParseInt(*asked).value_or(0);
  const auto& machine = view.recording().machine;
  return std::ranges::none_of(std::array{"cores", "cores_logical", "cores_physical"}, [&](const char* name) {
    const auto count = machine.find(name);
    return count != machine.end() && count->second == *used;
  });
}

// Fitted to programs of which as many again were then used to check it: docs/measurements.md.
void Predict(double spin, bool spins, Finding& finding) {
  if (spin >= kSpinCounts) {
    // Without the spinning, the rest of the CPU time remains; it shrinks as well, because operations that
    // nobody interrupts find their data in the cache.
    const double rest = 1 - std::min(spin, kMaxSpin);
    finding.speedup = {std::pow(rest, -kSpinGain), std::max(kMinGainOfFewerThreads, kSpinGainLeast / rest),
                       kSpinGainMost * std::pow(rest, -kSpinGain)};
    finding.method =
        "the CPU time without the spinning, which also makes the rest faster: as in other programs";
    return;
  }
  finding.speedup = spins
                        ? Speedup{kGainWhereThreadsSpin, kMinGainOfFewerThreads, kMaxGainWhereThreadsSpin}
                        : Speedup{kGainWhereThreadsSleep, kMinGainOfFewerThreads, kMaxGainWhereThreadsSleep};
  finding.method = fmt::format(
      "what fewer threads gained in other programs whose idle threads {}: how much of the CPU time is lost "
      "is not known",
      spins ? "spin" : "sleep");
}

// One process beside others: what remains of its CPU time without the spinning, on one thread, which gets its fair part
// of the cores, beside the process's other threads; with workers, as fast as they deliver on what is left.
void PredictOneThread(const View& view, const Load& load, Finding& finding) {
  const double step_ns = view.lead().MeanStepNs();
  const double work_ns = load.running * step_ns * (1 - std::min(*load.spin, kMaxSpin));
  const double part = std::min(1.0, view.cores() / (1 + load.others));
  auto pipeline = RecordedPipeline(view);
  double after_ns = work_ns / part / std::min(1 + load.own, view.cores() * replay::kCoresReached);
  if (pipeline && pipeline->workers > 0) {
    const double before_ns = step_ns * (1 - view.lead().Ratio(record::Share::kDataWait));
    for (double& ns : pipeline->consume_ns) ns *= after_ns / before_ns;
    pipeline->threads = 1;
    pipeline->train_cpu_ns = work_ns;
    // Fetches that do not wait for a core any more take the time that they compute or wait for others.
    const auto& loader = *view.lead().TrainingLoader();
    const double less = static_cast<double>(loader.run_delay_ns) / static_cast<double>(loader.fetch_ns);
    for (double& ns : pipeline->fetch_ns) ns *= 1 - std::min(less, 0.9);
    after_ns = replay::Replay(*pipeline).step_ns;
  }
  const double gain = step_ns / std::max(1.0, after_ns);
  // Among other programs the samples tell more spinning than goes away: no more is sure than for several processes.
  const double low = 1 + (gain - 1) * kSureOfOneThread;
  finding.speedup = load.IsAmongOthers() ? Speedup{gain * kAmongOthers, std::min(low, kMinGainOfFewerThreads),
                                                   gain * kMoreAmongOthers}
                                         : Speedup{gain, low, gain * kMoreOfOneThread};
  finding.method = "the steps run again with the CPU time that is left without the spinning, on one thread";
}

// The setting that mends it, in the words of who asked for the threads.
void Advise(const View& view, const Pools& pools, int64_t fitting, bool surely, Finding& finding) {
  const std::string variable = fmt::format("OMP_NUM_THREADS={}", fitting);
  const std::string call = fmt::format("torch.set_num_threads({})", fitting);
  const bool by_script = AskedByScript(view);
  if (surely) finding.change = by_script ? call : variable;
  finding.fix = {by_script ? fmt::format("{} in each process, instead of {}", call, pools.largest)
                           : fmt::format("set {} in the command's environment", variable)};
  if (!by_script) finding.fix.push_back(fmt::format("or in each process, before its first step: {}", call));
  const int64_t opencv = ParseInt(view.Fact("opencv_threads").value_or("")).value_or(0);
  if (opencv > fitting)
    finding.fix.push_back(fmt::format("OpenCV's pool too: cv2.setNumThreads({})", fitting));
  if (const auto mkl = view.Fact("mkl_num_threads"); mkl && ParseInt(*mkl).value_or(0) > fitting)
    finding.fix.push_back(fmt::format("MKL_NUM_THREADS={} as well: it is set to {}", fitting, *mkl));
}

void AddEvidence(const View& view, const Pools& pools, const Load& load, Finding& finding) {
  const EvidenceBuilder evidence(finding);
  const record::Labels trainers = {{"role", "trainer"}}, loaders = {{"role", "loader"}};
  evidence.FromHook("threads that compute, in all processes", static_cast<double>(pools.threads), "count");
  evidence.FromMachine("cores", view.cores(), "count");
  evidence.FromSeries(Metric::kProcessRunDelay, trainers, "threads that wait for a core, on average",
                      load.waiting);
  evidence.FromSeries(Metric::kProcessCpu, trainers, "cores that the training uses", load.running);
  if (load.loaders > 0)
    evidence.FromSeries(Metric::kProcessCpu, loaders, "cores that loader workers use or wait for",
                        load.loaders);
  if (const auto throttled = view.Mean(Metric::kCgroupCpuThrottled); throttled && *throttled >= kQuotaSpent)
    evidence.FromMetric(Metric::kCgroupCpuThrottled, "periods in which the quota ran out", throttled);
  evidence.FromSeries(Metric::kProcessSpin, trainers, "part of the CPU time in which they spin", load.spin);
}

}  // namespace

std::optional<Finding> JudgeThreadOversubscription(const View& view, Diagnosis& /*diagnosis*/) {
  const Pools pools = PoolsBeside(view);
  const double cores = view.cores();
  const auto load = LoadOf(view, pools);
  if (pools.processes == 0 || pools.largest < 2 || cores <= 0 || !load) return std::nullopt;
  // Spinning beside others is seen, not concluded: a pool that has its cores to itself does not queue for them.
  const bool beside = static_cast<double>(pools.threads) <= cores;
  if (beside && (pools.processes > 1 || !load->Spins() || !view.ComputesOnCpu())) return std::nullopt;
  const int64_t fitting = FittingThreads(view, pools, *load);
  if (pools.largest <= fitting) return std::nullopt;  // more processes than cores: no setting mends that

  // What waits only because of other programs is not enough: alone, the threads must want more than there is.
  const double wanted = load->Wanted() + (beside ? load->loaders + load->others : 0);
  const double queued = load->Queued();
  const bool queue = queued >= kThreadsQueue.warning && wanted >= kThreadsPerCore * cores;
  const double throttled = view.Mean(Metric::kCgroupCpuThrottled).value_or(0);
  if (!queue && throttled < kQuotaSpent) return std::nullopt;

  const std::string for_now = beside ? OnlyBesideOthers(view, pools, *load) : "";
  Finding finding;
  finding.of_others = !for_now.empty();
  finding.share = queue ? queued : throttled;
  const auto severity = SeverityOf(finding.share, kThreadsQueue, view.lead().steps);
  if (!severity) return std::nullopt;
  finding.severity = *severity;
  const std::string symptom =
      queue ? fmt::format("they wait for a core {} of the time", FormatPercent(queued))
            : fmt::format("the quota runs out in {} of its periods", FormatPercent(throttled));
  finding.title =
      fmt::format("{} on {} cores: {}", Described(pools, beside, *load), FormatCount(cores), symptom);
  if (load->Spins())
    finding.title += fmt::format(", and {} of their CPU time is spinning", FormatPercent(*load->spin));
  finding.title += ".";
  const bool surely =
      beside || pools.processes > 1 || static_cast<double>(pools.threads) >= kSurelyTooManyPerCore * cores;
  Advise(view, pools, fitting, surely, finding);
  if (!for_now.empty()) {
    for (std::string& fix : finding.fix) fix = for_now + ": " + fix;
    finding.fix.push_back("alone again, take it back: a pool as large as the machine is then the faster one");
  }
  AddEvidence(view, pools, *load, finding);
  if (!surely) {
    finding.severity = Severity::kInfo;
    finding.fix.front() = "try: " + finding.fix.front() +
                          " (it gains much where operations are short, and may lose where they are long)";
    return finding;
  }
  finding.costs = replay::Cost::kNothing;
  if (beside)
    PredictOneThread(view, *load, finding);
  else
    Predict(load->spin.value_or(0), !load->spin && IdleThreadsSpin(view, pools), finding);
  return finding;
}

}  // namespace fullbore::diagnose
