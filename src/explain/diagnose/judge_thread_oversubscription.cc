// thread-oversubscription: the threads that compute, of all processes of the command together, outnumber the
// cores. At the end of each operation all threads of a pool wait for the last one. When that one is not on a
// core, the others spin on theirs, and keep it away for longer: the cores are full of work that nobody needs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"

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

// Threads for each process. What other programs use is not there: a pool as large as the machine, one of whose
// threads waits for such a program, is slower than one that leaves it a core.
int64_t FittingThreads(const View& view, const Pools& pools) {
  const double left = view.cores() - std::round(view.CoresOfOthers().value_or(0));
  return std::max<int64_t>(1, static_cast<int64_t>(left / static_cast<double>(pools.processes)));
}

std::string Described(const Pools& pools) {
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
      "is "
      "not known",
      spins ? "spin" : "sleep");
}

}  // namespace

std::optional<Finding> JudgeThreadOversubscription(const View& view, Diagnosis& /*diagnosis*/) {
  const Pools pools = PoolsBeside(view);
  const double cores = view.cores();
  if (pools.processes == 0 || cores <= 0 || static_cast<double>(pools.threads) <= cores) return std::nullopt;
  const int64_t fitting = FittingThreads(view, pools);
  if (pools.largest <= fitting) return std::nullopt;  // more processes than cores: no setting mends that

  const record::Labels trainers = {{"role", "trainer"}};
  const auto running = view.Mean(Metric::kProcessCpu, trainers);
  const auto waiting = view.Mean(Metric::kProcessRunDelay, trainers);
  const auto throttled = view.Mean(Metric::kCgroupCpuThrottled);
  // What waits only because of other programs is not enough: alone, the threads must want more than there is.
  const double wanted = running.value_or(0) + waiting.value_or(0);
  const double queued = waiting && wanted > 0 ? *waiting / wanted : 0;
  const bool queue = queued >= kThreadsQueue.warning && wanted >= kThreadsPerCore * cores;
  const bool quota = throttled && *throttled >= kQuotaSpent;
  if (!running || (!queue && !quota)) return std::nullopt;

  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.share = queue ? queued : *throttled;
  const auto severity = SeverityOf(finding.share, kThreadsQueue, view.lead().steps);
  if (!severity) return std::nullopt;
  finding.severity = *severity;
  const std::string symptom =
      queue ? fmt::format("they wait for a core {} of the time", FormatPercent(queued))
            : fmt::format("the quota runs out in {} of its periods", FormatPercent(*throttled));
  const auto spin = view.Mean(Metric::kProcessSpin, trainers);
  finding.title = fmt::format("{} on {} cores: {}", Described(pools), FormatCount(cores), symptom);
  if (spin && *spin >= kSpinCounts)
    finding.title += fmt::format(", and {} of their CPU time is spinning", FormatPercent(*spin));
  finding.title += ".";
  const std::string variable = fmt::format("OMP_NUM_THREADS={}", fitting);
  const std::string call = fmt::format("torch.set_num_threads({})", fitting);
  const bool by_script = AskedByScript(view);
  const bool surely =
      pools.processes > 1 || static_cast<double>(pools.threads) >= kSurelyTooManyPerCore * cores;
  if (surely) finding.change = by_script ? call : variable;
  finding.fix = {by_script ? fmt::format("{} in each process, instead of {}", call, pools.largest)
                           : fmt::format("set {} in the command's environment", variable)};
  if (!by_script) finding.fix.push_back(fmt::format("or in each process, before its first step: {}", call));
  const int64_t opencv = ParseInt(view.Fact("opencv_threads").value_or("")).value_or(0);
  if (opencv > fitting)
    finding.fix.push_back(fmt::format("OpenCV's pool too: cv2.setNumThreads({})", fitting));
  if (const auto mkl = view.Fact("mkl_num_threads"); mkl && ParseInt(*mkl).value_or(0) > fitting)
    finding.fix.push_back(fmt::format("MKL_NUM_THREADS={} as well: it is set to {}", fitting, *mkl));

  evidence.FromHook("threads that compute, in all processes", static_cast<double>(pools.threads), "count");
  evidence.FromMachine("cores", cores, "count");
  evidence.FromSeries(Metric::kProcessRunDelay, trainers, "threads that wait for a core, on average",
                      waiting);
  evidence.FromSeries(Metric::kProcessCpu, trainers, "cores that the training uses", running);
  if (quota)
    evidence.FromMetric(Metric::kCgroupCpuThrottled, "periods in which the quota ran out", throttled);
  evidence.FromSeries(Metric::kProcessSpin, trainers, "part of the CPU time in which they spin", spin);
  if (!surely) {
    finding.severity = Severity::kInfo;
    finding.fix.front() = "try: " + finding.fix.front() +
                          " (it gains much where operations are short, and may lose where they are long)";
    return finding;
  }
  Predict(spin.value_or(0), !spin && IdleThreadsSpin(view, pools), finding);
  return finding;
}

}  // namespace fullbore::diagnose
