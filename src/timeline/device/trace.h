// One rank's recorded activity in compact form, as the trace readers fill it: device operations, the host
// calls that launched them, and what the host was doing. Beyond this point nothing depends on the tool that
// recorded it.
//
// Times are the trace's own nanoseconds. About 64 bytes per device operation, 40 per call, 24 per host span,
// 16 per operator whose shapes are kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/noticed.h"
#include "timeline/device/kinds.h"
#include "timeline/device/operators.h"
#include "timeline/pod_vector.h"

namespace fullbore::timeline {

using NameId = uint32_t;

// Numbered texts. Bounded: beyond kMaxNames all new ones become "(further names)".
class NameTable {
 public:
  static constexpr size_t kMaxNames = 1 << 16;

  NameTable();
  NameId Find(std::string_view text);  // adds it where it is new
  std::string_view operator[](NameId id) const { return *texts_[id]; }
  size_t size() const { return texts_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, NameId, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> texts_;
};

inline constexpr uint32_t kNone = ~0U;

inline constexpr uint16_t kMaxBlocks = 0xffff;

struct DeviceOp {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t launch_begin_ns = -1;  // of the host call, -1 where unknown; set by DeviceTrace::Finish
  int64_t launch_end_ns = -1;
  uint64_t correlation = 0;  // 0: none recorded
  NameId name = 0;
  uint32_t detail = kNone;     // into `copy_bytes` or `collectives`, by lane
  uint32_t call = kNone;       // into `calls`
  uint16_t stream = 0;         // into `streams`
  uint16_t launch_thread = 0;  // into `threads`
  Lane lane = Lane::kOtherCompute;
  bool kernel = false;  // as the recorder calls it: a kernel may copy
  uint16_t blocks = 0;  // of a kernel's grid, kMaxBlocks if there are more; 0 where unknown
};

struct HostCall {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint64_t correlation = 0;
  NameId name = 0;
  uint16_t thread = 0;
  CallKind kind = CallKind::kOther;
  uint16_t blocks =
      0;  // as in DeviceOp, where the recorder notes the grid with the call: that is the surer one
};

enum class SpanKind : uint8_t {
  kOp,      // a framework operator
  kLoader,  // the data loader's `next`
  kCheckpoint,
  kValidation,
  kGarbageCollection,
  kBackward,  // autograd::engine::evaluate_function
  kOptimizer,
  kCollectiveCall,  // "nccl:all_reduce" and c10d's record of a collective
  kPython,          // a Python function; recorded only with stacks
  kAnnotation,
};

struct HostSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  NameId name = 0;
  uint16_t thread = 0;
  SpanKind kind = SpanKind::kOp;
  uint8_t inner = 0;  // operators within it, which are not kept; 255 where there are more
};

// A stretch of the backward pass in which operators of the forward pass run again, for activations that were not kept.
struct Recomputation {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint16_t thread = 0;
};

struct StepMark {  // ProfilerStep#N, or a range that the user named a step
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t number = 0;
  uint16_t thread = 0;
  record::ServingPhase phase = record::ServingPhase::kUnknown;  // of an iteration of a serving engine
  int64_t tokens = -1;                                          // of the same; -1 where unknown
};

struct Collective {
  NameId kind = 0;   // "all_reduce"; 0 is unknown
  NameId group = 0;  // process group
  int64_t bytes = -1;
  int32_t group_size = -1;
  int32_t peer = -1;  // the rank that a send goes to, or a receive comes from
};

// A collective as called by the host: the kernels launched inside belong to it.
struct CollectiveCall {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint16_t thread = 0;
  Collective collective;
};

std::string JsonText(std::string_view text);  // quoted and escaped, for facts

// What a reader had to leave out, by reason; each reason becomes one message with its count.
using LeftOut = std::map<std::string, int64_t>;

// What a synchronisation waits for, where the recorder says so: Kineto's "cuda_sync" events, Nsight's table of
// synchronisations.
enum class WaitKind : uint8_t {
  kStream,       // the host, for all that was launched on a stream
  kDevice,       // the host, for everything
  kEvent,        // the host, for what a stream had been given when the event was recorded
  kStreamEvent,  // a stream, for the same
};

struct WaitRecord {
  int64_t begin_ns = 0;
  uint64_t correlation = 0;        // of the call that waits, or makes a stream wait
  uint64_t event_recorded = 0;     // the correlation of the call that recorded the event; 0 where unknown
  uint16_t stream = kNoStream;     // kStream: that is waited for. kStreamEvent: that waits
  uint16_t on_stream = kNoStream;  // on which the event was recorded
  WaitKind kind = WaitKind::kDevice;

  static constexpr uint16_t kNoStream = 0xffff;
};

// cudaEventRecord and the like: too many and too short to be calls that explain anything by themselves.
struct EventCall {
  int64_t begin_ns = 0;
  uint64_t correlation = 0;
};

struct CounterReading {
  int64_t t_ns = 0;
  double value = 0;
};

// One hardware counter of one kernel, as CUPTI's range profiler measures it.
struct KernelCounter {
  int64_t t_ns = 0;
  uint32_t range = 0;  // which of the measured kernels, in the order of the trace
  NameId kernel = 0;
  NameId counter = 0;
  double value = 0;
};

struct DeviceTrace {
  NameTable names;
  PodVector<DeviceOp> ops;
  PodVector<HostCall> calls;
  PodVector<HostSpan> spans;
  PodVector<Recomputation> recomputations;  // of one thread they do not overlap
  OperatorLog operators;
  // Median, from the begin of an operator to that of the first one within it; 0 where none was seen.
  int64_t operator_start_ns = 0;
  std::vector<StepMark> steps;
  std::vector<int64_t> copy_bytes;      // DeviceOp::detail of copies
  std::vector<Collective> collectives;  // DeviceOp::detail of collectives
  std::vector<CollectiveCall> collective_calls;
  std::vector<WaitRecord> waits;       // by begin
  std::vector<EventCall> event_calls;  // that recorded an event, by correlation
  std::vector<std::string> threads;    // how the recorder names them
  std::vector<std::string> streams;    // "0/7": device and stream
  std::map<std::string, std::vector<CounterReading>> counters;
  std::vector<KernelCounter> kernel_counters;
  std::map<std::string, std::string> facts;  // values are JSON texts
  std::vector<std::string> devices;          // names by device number, where known
  std::vector<int64_t> multiprocessors;      // of the same devices; 0 where unknown
  std::map<int64_t, int64_t> device_ops;     // operations by device number
  int64_t pid = 0;
  std::optional<int> rank;
  std::optional<int> world_size;
  int64_t events = 0;             // read, of any kind
  int64_t base_ns = 0;            // added to the trace's times it gives the wall clock
  std::string source = "kineto";  // which reader filled it: record::Recording::source
  LeftOut left_out;
  record::Noticed noticed;         // by the reader and Finish()
  std::vector<std::string> notes;  // further messages for the report
  // Of further ranks, where scripts have merged the traces of several into one file. Each is finished.
  std::vector<DeviceTrace> others;

  // Call once when everything has been added: sorts, leaves out or mends impossible times (mend.h), links
  // operations to the calls that launched them, and counts what is to be noticed (noticed.h).
  void Finish();

  uint16_t main_thread() const { return main_thread_; }  // runs the steps; else the first; else launches most
  bool has_device_activity() const { return !ops.empty(); }
  bool ids_repeat() const { return ids_repeat_; }  // several calls that launch have one correlation id

 private:
  void Sort();
  void TieLaunches();
  void TieCollectives();
  void FindMainThread();

  uint16_t main_thread_ = 0;
  bool ids_repeat_ = false;
};

}  // namespace fullbore::timeline
