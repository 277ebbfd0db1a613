// A recording in memory: what diagnosis, reports and exports see, whatever recorded it (`fullbore
// run`, the CUDA collector, a PyTorch profiler trace, an Nsight Systems export). Plain values,
// owned by whoever holds them.
//
// Unknown is absent (empty optional, missing map entry), never 0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/activity.h"
#include "record/host_work.h"
#include "record/noticed.h"
#include "record/roofline.h"
#include "record/share.h"
#include "record/sketch.h"
#include "record/step_graph.h"
#include "record/step_timeline.h"

namespace fullbore::record {

// ---- what the machine did ----

using Labels = std::map<std::string, std::string>;  // {"gpu": "0"}, {"role": "loader"}, {"device": "vda"}

// One quantity of one object. `resolution` is the step in which values are stored (0.01 for a ratio).
struct SeriesKey {
  std::string name;  // "gpu_sm_active", from the table in docs/metrics.md
  std::string unit;  // "ratio", "bytes", "bytes/s", "W", "count", ...
  Labels labels;
  double resolution = 0;  // 0: stored exactly

  auto operator<=>(const SeriesKey&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm
};

struct Reading {
  int64_t t_ns = 0;  // end of the interval that the value covers
  double value = 0;
};

struct Series {
  SeriesKey key;
  std::vector<Reading> readings;  // by time
};

// ---- what the training did ----

// One optimizer step of one rank: from the end of the previous optimizer step to the end of this one.
struct Step {
  int64_t index = 0;  // 0 is the rank's first
  int64_t end_ns = 0;
  int64_t wall_ns = 0;
  int64_t samples = 0;    // training examples; 0 where unknown (then `samples_known` of the rank is false)
  int32_t batches = 0;    // batches taken from the training loader (several with gradient accumulation)
  ShareTimes share_ns{};  // sums to wall_ns
  std::array<int64_t, kHostOtherCount> host_other_ns{};  // sums to share_ns[kHostOther]
  int64_t device_ns = -1;      // time the device worked for this step by its own clock, -1 where unknown
  int32_t ready_batches = -1;  // in the loader's queue when `next` was entered, -1 where unknown
  int64_t comm_wait_ns = -1;   // inside collectives until the last rank arrived, -1 where unknown
  int64_t elements = 0;        // of the tensor that counts the samples, in all batches; 0 where unknown
  // In a trial that takes turns, -1 elsewhere; in no file:
  int64_t without_core_ns = -1;  // the training thread was ready to run, and had no core
  int64_t cpu_ns = -1;           // of all threads of the rank's process
  int64_t on_core_ns = -1;       // of the training thread
};

// All steps of one rank that ended in a stretch of about a second, summed.
struct StepWindow {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t first_step = 0;
  int64_t steps = 0;
  int64_t samples = 0;
  int64_t min_wall_ns = 0;
  int64_t max_wall_ns = 0;
  ShareTimes share_ns{};
  std::array<int64_t, kHostOtherCount> host_other_ns{};
};

// A step that takes so many times the median is a slow one.
inline constexpr double kSlowStep = 2.0;

// A place where the line sampler saw the training thread spend time of one share, doing one thing. The hits
// of all lines too rare to be kept are in lines without a file, so that sums are those of all samples.
struct HotLine {
  Share share = Share::kHostOther;
  std::string file;
  int line = 0;
  std::string function;
  std::string text;  // the source line, trimmed; empty where it could not be read
  int64_t samples = 0;
  HostOther part = HostOther::kUnnamed;  // where the share is host_other
  Activity activity = Activity::kUnknown;
  // In the iterator that the training loop goes through, rather than in the loop's body.
  bool in_iterator = false;
  std::string library{};     // whose loop it is, if no line of it is the user's; of a fetch: what it calls
  int64_t slow_samples = 0;  // of `samples`, those in slow steps; older files have none
};

inline constexpr char kFullboreData[] = "fullbore.data";
inline constexpr char kWatched[] = "fullbore.watch";  // an iterable of which only the waits are known

// One data loader of one rank, and what its workers did. Times are sums over the steady part unless noted.
struct Loader {
  int id = 0;
  bool feeds_training = false;
  std::string library;  // kFullboreData, kWatched; empty for a DataLoader
  int64_t num_workers = 0;
  std::optional<int64_t> batch_size;
  std::optional<int64_t> prefetch_factor;
  bool pin_memory = false;
  bool persistent_workers = false;
  bool default_collate = false;  // torch's own function puts samples together
  std::string
      start_method;     // of its workers' processes: "fork", "spawn", "forkserver"; empty where not known
  std::string dataset;  // name of its class
  std::optional<int64_t> dataset_samples;
  std::string where;  // "train.py:57"
  // Only for fullbore.data, whose stages are in the series `loader_*`:
  std::optional<int64_t> threads;        // as the user chose them; 0: the loader chooses
  std::optional<int64_t> map_processes;  // that run the user's own stage; 0: the loader's threads do
  // Only for torch's DataLoader: what fullbore.data would need a sample, on a core, measured on some of its own
  // samples; or why it cannot take its place. Neither where that was not tried.
  std::optional<int64_t> fast_sample_ns;
  std::string fast_refused;

  int64_t batches = 0;  // fetched in workers (or inline with num_workers=0)
  int64_t samples = 0;
  int64_t fetch_ns = 0;         // wall time inside fetch, summed over workers; of that:
  int64_t collate_ns = 0;       //   in collate_fn
  int64_t cpu_ns = 0;           //   on a core
  int64_t run_delay_ns = 0;     //   runnable, but no core free
  int64_t worker_span_ns = 0;   // first fetch begun to last fetch ended, summed over workers
  int64_t worker_idle_ns = 0;   // of that, between fetches: waiting for the parent to ask
  int64_t restarts = 0;         // epochs after the first
  int64_t restart_wait_ns = 0;  // the wait for their first batch: worker start and refilling the queue
  int64_t draws = 0;            // of them: whose sampler took long to draw the order of the samples
  int64_t draw_ns = 0;          // the time of these draws, in the training's own process
  Sketch batch_fetch_ns;        // one value per batch
  Sketch slowest_sample_ns;     // one value per batch: its slowest sample
  Sketch wait_ns;               // one value per `next` of the parent
  std::vector<HotLine> lines;   // where the samples of its workers saw them while they fetched

  // Then they do not run what the script guards by `if __name__ == "__main__"`, and get the dataset pickled.
  bool WorkersImportScript() const { return !start_method.empty() && start_method != "fork"; }
};

// ---- tables of device activity over the whole recording, from a trace or from the CUDA collector ----

struct KernelStats {
  std::string name;
  // "matmul_tensor", "matmul", "attention", "elementwise", "reduction", "optimizer", "other".
  std::string kernel_class;
  int64_t count = 0;
  int64_t sum_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  Sketch duration_ns;
};

struct CopyStats {
  std::string kind;  // "copy_h2d_pageable", "copy_h2d_pinned", "copy_d2h_...", "copy_d2d", "memset"
  int64_t count = 0;
  std::optional<int64_t> bytes;
  int64_t sum_ns = 0;
  int64_t exposed_ns = 0;  // while nothing else runs; where several kinds do, for the first in the list above
  Sketch duration_ns;
};

// A place where the host waits for the device.
struct SyncStats {
  std::string call;   // "cudaStreamSynchronize"
  std::string where;  // "aten::item, train.py(81): step"; what is known of it
  int64_t count = 0;
  int64_t blocked_ns = 0;  // the host, inside the call
  int64_t idle_ns = 0;     // the device, because of it: part of the share `sync`
};

struct CollectiveStats {
  std::string kind;   // "all_reduce"
  std::string group;  // process group, empty where unknown
  std::optional<int64_t> group_size;
  int64_t count = 0;
  std::optional<int64_t> bytes;  // of those calls whose size is known; `bytes_ns` is what these took
  int64_t bytes_ns = 0;
  int64_t sum_ns = 0;
  int64_t exposed_ns = 0;
  std::optional<int64_t> wait_ns;  // of sum_ns, until the last rank arrived; needs the other ranks
  Sketch duration_ns;
  bool of_gradients = true;  // not of one that carries activations: of experts, of tensor parallel layers
};

struct LaunchStats {
  int64_t count = 0;
  int64_t late = 0;           // launched when the device had already run dry
  int64_t short_kernels = 0;  // shorter than the call that launched them
  Sketch call_ns;             // the host's call
  Sketch delay_ns;            // from the end of the call to the begin on the device; 0 where it began before
};

struct DeviceTables {
  std::vector<KernelStats> kernels;  // by sum_ns, largest first
  std::vector<CopyStats> copies;
  std::vector<SyncStats> syncs;              // by idle_ns, largest first
  std::vector<CollectiveStats> collectives;  // by sum_ns, largest first
  std::optional<LaunchStats> launches;
};

// Outermost operators of one name, on the CPU.
struct OperatorTime {
  std::string name;  // "aten::linear", "AddmmBackward0"
  int64_t count = 0;
  int64_t sum_ns = 0;
  std::optional<double> flops;  // of those calls whose work is known
};

struct RankInfo {
  int rank = 0;
  int node = 0;  // of a run on several machines: which of Stage::nodes
  int64_t pid = 0;
  std::string hostname;
  std::string device;  // "cuda:0", "cpu"; empty where unknown
  bool samples_known = false;
  bool device_activity = false;     // shares describe the device, not the training thread
  std::vector<Step> steps;          // kept in full: the first ones, the worst ones, regular stretches between
  std::vector<StepWindow> windows;  // covering all steps
  std::vector<HotLine> hot_lines;
  std::vector<Loader> loaders;
  std::map<std::string, std::string> facts;  // "torch" -> "2.13.0+cpu"; values are JSON texts
  Noticed noticed;                           // about the recording itself; of traces only

  // Device activity over the whole recording; absent without a collector or trace.
  std::optional<int64_t> span_ns, busy_ns, compute_ns, comm_ns, comm_exposed_ns, comm_overlapped_ns, copy_ns,
      copy_exposed_ns, kernels;
  std::map<std::string, int64_t> kernel_class_ns;  // parts of compute_ns; overlaps count once
  std::optional<int64_t> comm_wait_ns;  // of the collectives' time, until the last rank arrived (straggler)
  std::optional<DeviceTables> tables;
  std::optional<StepGraph> graph;        // of the first steps, what waited for what
  std::optional<StepTimeline> timeline;  // of a trace's median step
  std::optional<Roofline> roofline;      // only of traces with shapes
  std::vector<OperatorTime> operators;   // only of traces without a device: by sum_ns, largest first
  std::optional<HostWork> host_work;     // the same
};

// A few steps of a rank under its framework's own profiler.
struct DeviceWindow {
  int rank = 0;
  int64_t first_step = 0;
  int64_t steps = 0;
  std::string trace;  // Kineto JSON in one zstd frame, as --keep-windows writes it to a file
};

// Of a process that records a part of the command as a run of its own.
inline constexpr std::string_view kRecorderRole = "recorder";

struct Process {
  int64_t pid = 0;
  int64_t parent_pid = 0;
  std::string role;  // "trainer", "loader", "recorder", "other"
  int rank = -1;
  std::string command;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // 0 while it runs
};

enum class Severity : uint8_t { kInfo, kWarning, kError };

struct Message {
  std::optional<int64_t> t_ns;  // absent for a message about the whole recording
  Severity severity = Severity::kInfo;
  std::string source;  // "hook", "nvml", "recorder", "--fast-data"
  std::string text;
};

// One machine of a run on several (run_of_nodes.h).
struct Node {
  struct Mean {
    SeriesKey key;
    double value = 0;
  };
  std::string name;                            // of its file: the host's, unless it was given another one
  std::string path;                            // of its run file
  std::map<std::string, std::string> machine;  // as Recording::machine
  std::vector<Mean> means;  // of its series while its ranks trained, without the first quarter
  int64_t end_ns = 0;       // last moment recorded there
  bool cut_off = false;     // its recorder was gone before the others'
};

// A stage that is still marked as running although its recorder is gone was cut off.
enum class StageState : uint8_t { kRunning, kEnded };

// One command under a run id. A run of one command has one stage.
struct Stage {
  int64_t id = 0;
  std::string name;
  std::vector<std::string> command;
  std::string directory;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // last moment recorded
  StageState state = StageState::kRunning;
  std::optional<int> exit_status;  // as a shell reports it: 128+n for signal n
  bool out_of_memory = false;      // the kernel killed a process of the command for memory

  std::vector<RankInfo> ranks;
  std::vector<Node>
      nodes;  // of a run on several machines, by their lowest ranks; the rest is of the first of them
  std::vector<DeviceWindow> device_windows;  // the newest of each rank, by rank
  std::vector<Series> series;
  std::vector<Process> processes;
  std::vector<Message> messages;
};

struct Recording {
  std::string id;      // "2026-11-21-0915-train"
  std::string source;  // "run", "kineto", "nsys"
  std::string path;
  std::map<std::string, std::string> tags;
  std::map<std::string, std::string> machine;  // "hostname", "cpu_model", "cores", ...: docs/metrics.md
  int64_t wall_offset_ns = 0;                  // wall clock = monotonic + offset
  std::vector<Stage> stages;
};

}  // namespace fullbore::record
