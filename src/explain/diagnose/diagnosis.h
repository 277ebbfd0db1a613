// A diagnosis: what the report shows, as values. Its JSON form is docs/report.schema.json
// ("fullbore.report/1").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "explain/fitness/fitness.h"
#include "explain/replay/change/change.h"
#include "record/share.h"

namespace fullbore::diagnose {

enum class Severity : uint8_t { kInfo, kWarning, kCritical };

struct Evidence {
  std::string what;  // "queue empty when the step asked for a batch"
  double value = 0;
  std::string unit;                         // "ratio", "ms", "samples/s", "count", ...
  std::string source;                       // "hook", "nvml", "cgroup", "proc", "trace"
  std::string series;                       // the series to highlight in a chart, "" if none
  std::optional<int64_t> begin_ns, end_ns;  // its place in time, if it has one
};

// How many times as fast the run becomes: 1.5 means two thirds of the time.
struct Speedup {
  double expected = 1;
  double low = 1;
  double high = 1;
};

struct Place {
  std::string file;
  int line = 0;
  std::string text;  // the source line
  double share = 0;  // of the step
};

struct Finding {
  std::string id;     // "input-bound": docs/findings/input-bound.md explains it
  std::string cause;  // more specific: "too-few-workers", "storage", "decode", "collate", "slow-sample", ""
  Severity severity = Severity::kInfo;
  double share = 0;   // of the step, 0..1
  std::string title;  // one sentence with the numbers in it
  std::vector<Evidence> evidence;
  std::vector<std::string> fix;  // each one thing to do; the first is the recommended one
  std::string change;            // the recommended change in code, "DataLoader(num_workers=4)"; may be empty
  std::vector<std::string>
      otherwise;  // takes the place of `fix` if that is not sure to gain; not part of the report
  std::vector<Place> where;
  Speedup speedup;
  std::string method;                        // how the prediction was made; empty if none was
  replay::Cost costs = replay::Cost::kCode;  // of the recommended change
  bool doubtful = false;                     // with the machine to itself, the run might not have it

  // What it says of other findings; not part of the report.
  struct Superseded {
    std::string id;
    std::string cause;  // "" for any
  };
  // The change to the recorded steps whose prediction it quotes, as in --what-if, and what that gives; empty if none.
  // It stays when the gain is taken back (explain/diagnose/quotes.h).
  std::string quotes;
  Speedup quoted;
  std::vector<Superseded> supersedes;  // its symptoms, which are left out: each cause is named once
  bool stands_still =
      false;               // nothing moves any more, or it soon ends: comes first, whatever else would gain
  bool of_others = false;  // about what others do to the machine, not about this run's own health
  bool open = false;       // neither its cause nor a cure is sure: never the first
};

struct NotJudged {
  std::string id;
  std::string why;
  std::string needs;
};

struct WouldNotHelp {
  std::string what;
  std::string why;
};

// One kind of collective in one process group. Bandwidths are in bytes/s, as nccl-tests counts them.
struct CollectiveSummary {
  std::string kind;   // "all_reduce"
  std::string group;  // empty where unknown
  std::optional<int64_t> group_size;
  int64_t count = 0;
  std::optional<int64_t> bytes;
  int64_t sum_ns = 0;
  int64_t exposed_ns = 0;
  std::optional<int64_t> wait_ns;  // part of sum_ns, until the last rank arrived
  std::optional<double> algorithm_bandwidth, bus_bandwidth;
};

struct RankShares {
  int rank = 0;
  std::string device;
  int64_t steps = 0;
  double mean_step_ns = 0;
  std::map<std::string, double> shares;
  std::optional<int64_t> span_ns, busy_ns, compute_ns, comm_ns, comm_exposed_ns, copy_ns, copy_exposed_ns,
      kernels;
  std::optional<double> comm_overlap_ratio;
  std::map<std::string, int64_t> kernel_class_ns;
  std::vector<CollectiveSummary> collectives;  // by sum_ns, largest first
};

// In what one machine of a run differs from the others.
struct Difference {
  std::string metric;           // of docs/metrics.md, or a fact of the machine
  std::string what;             // "SM clock of its slowest GPU"
  std::string here, elsewhere;  // "1.02 GHz", "1.75 GHz"; of the others the median, or what most of them have
};

// One machine of a run on several.
struct NodeSummary {
  std::string name;
  std::vector<int> ranks;
  double mean_step_ns = 0;  // of its ranks together, as the shares; 0 where no steps were seen
  std::map<std::string, double> shares;
  bool cut_off = false;             // its recorder was gone before the others'
  std::vector<Difference> differs;  // what says most first
};

struct Resource {
  double mean = 0, p50 = 0, p95 = 0, max = 0;
  std::string unit;
};

// A stretch of steady steps that take alike long.
struct Regime {
  int64_t steps = 0;
  double mean_step_ns = 0;
};

// What the operations of a class of kernels take in a step, now and then.
struct ClassTime {
  std::string kernel_class;  // "matmul_tensor"
  double now_ns = 0;
  double expected_ns = 0, low_ns = 0, high_ns = 0;
};

// The recorded steps with a change made, and all those before it in the list.
struct Rung {
  std::string change;              // as in --what-if: "no-sync"
  std::string does;                // "the host reads nothing back from the device within a step"
  std::string assumes;             // what it cannot do without
  std::string costs;               // "nothing", "code", "memory", "numerics"
  double step_ns = 0;              // expected
  Speedup speedup;                 // against the recorded steps
  std::vector<ClassTime> classes;  // with this change alone, where it changes each class in its own way
};

// The recorded steps of the judged rank, run again as a graph of what waited for what.
struct ReplayReport {
  double error = 0;        // of the unchanged replay against what was recorded, as a ratio
  bool rough = false;      // so large that predictions are rough
  bool predicts = true;    // not so large that there are none
  double unexplained = 0;  // of the step: time that follows from nothing recorded
  int64_t assumed = 0;     // dependencies between streams that are assumed, not recorded
  std::string device;      // that they ran on, where what it can do is known
  std::vector<Rung> ladder;
  std::vector<Rung> what_if;                                 // what the user asked for
  std::vector<std::pair<std::string, std::string>> refused;  // of that: the change, and why it cannot be made
};

// A few steps of a run under its framework's own profiler: what the host's clock does not show. The findings that rest
// on it are among the diagnosis's own.
struct WindowReport {
  int64_t first_step = 0;
  int64_t steps = 0;
  double mean_step_ns = 0;               // slowed down by the profiler
  bool device = false;                   // it saw a device; else the CPU's operators
  std::map<std::string, double> shares;  // of the device; empty without one
  struct Operator {
    std::string name;
    int64_t count = 0;  // a step
    double share = 0;   // of the steps, on all threads together
    double ns = 0;      // a step
    std::optional<double> flops_per_s;
  };
  std::vector<Operator> operators;  // of the CPU, largest first; empty with a device
};

// Iterations of a serving engine of one kind.
struct ServedPhase {
  std::string phase;  // "prefill", "decode", "mixed"
  int64_t iterations = 0;
  double share = 0;  // of the time of all iterations
  std::optional<double> tokens_per_s, tokens_per_iteration;
};

// Where no steps were seen, but samples of stacks (a process that ran already).
struct Sampling {
  int64_t samples = 0;
  double points = 0;  // half the width of the shares' 95 % interval, as a ratio
};

// What the model of one rank computes, by its own modules.
struct ModelFlops {
  double per_s = 0;
  std::optional<double>
      mfu;           // of the device's peak; nothing where that, or a part of the model, is not known
  std::string peak;  // "H100 SXM in bfloat16"; empty without MFU
  std::vector<std::string> unknown;  // classes of modules that are not counted
  bool operator==(const ModelFlops&) const = default;
};

struct LoggedPoint {
  int64_t t_ns = 0;
  int64_t step = 0;  // as the script counts them; the training's, where it gives none
  double value = 0;
};

// What the script logs itself under one name.
struct LoggedMetric {
  std::string name;                  // the script's
  int rank = 0;                      // that logs it; of several, the lowest
  std::vector<std::string> loggers;  // that the script gives it to: "tensorboard"
  int64_t values = 0;                // that were kept; those that were not:
  int64_t thinned = 0;               //   they came too fast
  int64_t not_finite = 0;            //   NaN, or infinite
  int64_t on_device = 0;             //   where reading them would have made the script wait
  double first = 0, last = 0;
  std::vector<LoggedPoint> points;  // by time; of many, neighbours are averaged
};

// Of a device's memory: "weights", "gradients", "states", "activations", "fragments", "outside", "others", "free".
struct MemoryPart {
  std::string name;
  double bytes = 0;
  std::map<std::string, double> of = {};     // states by their names: "exp_avg"
  std::map<std::string, double> types = {};  // weights, gradients and states by the type of their numbers
};

// A device's memory when its process held most.
struct MemoryBudget {
  int rank = 0;                   // whose device: of several, the fullest
  double total = 0;               // bytes
  std::vector<MemoryPart> parts;  // in this order, those that are more than nothing
};

// What another batch would take of the device.
struct MemoryWhatIf {
  std::string change;   // "batch=64,seq=4096"
  std::string missing;  // why it cannot be said; then nothing of what follows is
  std::string batch;    // "64 rows of 4,096 tokens"
  std::string seen;     // "4 rows of 1,024 tokens", the largest of the run
  double now = 0;       // bytes of the device, with that
  double low = 0, expected = 0, high = 0;
  double total = 0;
  size_t sizes = 0;     // of batches that it rests on
  std::string assumes;  // where these do not show it
};

struct Diagnosis {
  std::string run_id;
  std::string source;        // path of the run file or trace
  std::string stage;         // which stage is judged, where there are several
  fitness::Fitness fitness;  // what limits all that follows
  std::map<std::string, std::string> machine;

  // The steady state of the judged stage. Without steps, `steps` is 0 and all that follows up to `shares` is
  // empty.
  int64_t begin_ns = 0, end_ns = 0;
  int64_t steps = 0, warmup_steps = 0;
  std::string warmup_why;  // "the first 12 steps took 3.1 s, the others 80 ms on average"
  // Where the steady state itself has two: its first steps and the others. Empty if it has one.
  std::vector<Regime> regimes;
  std::optional<double> samples_per_s, samples_per_s_low, samples_per_s_high;
  std::optional<double> tokens_per_s;         // that the model computes, padding and all
  std::optional<double> useful_tokens_per_s;  // of these, where it is known which are padding
  std::optional<ModelFlops> flops;
  double steps_per_s = 0;
  double mean_step_ns = 0, median_step_ns = 0, p95_step_ns = 0;
  std::map<std::string, double> shares;            // sums to 1
  std::map<std::string, double> host_other_parts;  // ratios of the step
  // Of the device's work, what the backward pass computes for the second time; nothing where nothing is.
  std::optional<double> recomputed;
  // Then `steps` counts iterations of this engine, which serves a model: "vLLM".
  std::string engine;
  std::vector<ServedPhase> served;  // by the engine's own marks; empty where it makes none
  // Then `steps` counts seconds of samples, and there are shares, but no step times and no rates.
  std::optional<Sampling> sampled;
  bool device_shares = false;  // the shares are those of the device, not of the training thread

  std::vector<NodeSummary> nodes;  // of a run on several machines, by their lowest ranks; else empty
  std::vector<RankShares> ranks;
  std::map<std::string, Resource> resources;  // series name with labels -> summary over the window
  std::vector<Finding> findings;              // ordered: the verdict first
  std::vector<WouldNotHelp> would_not_help;
  std::vector<NotJudged> not_judged;
  std::optional<ReplayReport> replay;
  std::optional<WindowReport> device_window;
  std::optional<MemoryBudget> memory;  // of runs on devices
  std::optional<MemoryWhatIf> memory_what_if;
  std::map<std::string, std::string> facts;  // values are JSON texts
  std::vector<std::string> messages;
  std::vector<std::string> notes;  // of those who read a trace: how, and what they left out
  std::optional<int> exit_status;
  bool out_of_memory = false;
  std::vector<LoggedMetric> logged;  // by the script itself, losses first
};

}  // namespace fullbore::diagnose
