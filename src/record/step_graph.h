// What the steps of one rank waited for: a graph that explain/replay runs again with something changed.
//
// A node begins when everything that it waits for has come: each edge into it is the end (or the begin) of
// another node plus a lag. No node keeps its time of day, so the recorded step time is a result of the graph,
// not an input.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "record/lane.h"

namespace fullbore::record {

enum class Work : uint8_t {
  kHost,    // a thread between two of its calls: framework, Python
  kLoader,  // the data loader's `next`
  kCheckpoint,
  kValidation,
  kGarbageCollection,
  kAway,          // inside nothing recorded for longer than Python needs between two operators
  kLaunch,        // a call that launches work, or a copy that does not block
  kBlockingCall,  // a call, as far as it does not wait; what it waits for is tied to the kReturn behind it
  kReturn,        // of a call that waited; of no duration
  kRoom,          // a launch found room in the launch queue after it had waited for it; of no duration
  kDevice,        // an operation on a stream
  kUnexplained,   // an operation began, or a call returned, later than all that is known to precede it
  kFetch,         // a worker of the data loader fetches a batch
  kStepEnd,       // of no duration
};

enum class Dependency : uint8_t {
  kThread,    // order on a thread
  kStream,    // order on a stream
  kLaunch,    // an operation follows its call
  kEvent,     // an operation waits for one of another stream, as recorded
  kAssumed,   // an operation follows one of another stream: not recorded, but assumed from times
  kSync,      // a blocking call returns when this operation has ended
  kHandOver,  // one thread waits for another
  kQueue,     // a launch waits for room in the launch queue
  kLoader,    // `next` waits for a batch, or a worker for room to put one
  kStart,     // what waits for nothing known begins as long after the first node as recorded
};

// The part of a step that launched an operation, or that a thread is in.
enum class Phase : uint8_t {
  kForward,
  kBackward,
  kRecomputation,  // in the backward pass, what the forward pass had computed already
  kOptimizer,
  kValidation,
};

// What an operator computes with: matrix units with elements of this type, or what every device has.
enum class Arithmetic : uint8_t { kVector, kFloat32, kTensorFloat32, kFloat16, kBFloat16, kFloat8, kOther };

// Which types shorter than float32 the device's units for matrices take.
enum class MatrixUnits : uint8_t {
  kUnknown,   // neither the device's name nor its kernels tell
  kNone,      // it has no such units: a shorter type gains little
  kFloat16,   // NVIDIA's tensor cores before compute capability 8.0: no bfloat16, no TF32
  kBFloat16,  // both
};

struct StepGraph {
  struct Node {
    int64_t duration_ns = 0;
    int64_t bytes = -1;   // of copies and collectives; -1 where unknown
    int64_t wait_ns = 0;  // part of a collective's duration: until its last rank arrived
    uint32_t name =
        0;  // into `names`: of the operation, or of the place of a call ("aten::item, train.py(81): step")
    uint32_t meeting = 0;  // a collective has the same number on all ranks; 0 where they are not known
    uint16_t place = 0;    // thread or stream
    Work work = Work::kHost;
    Lane lane =
        Lane::kOtherCompute;  // of kDevice; of kReturn, the copy that the call or the one before it made
    Phase phase = Phase::kForward;
    bool of_allocator = false;  // of a call: it takes or frees memory of the device
    bool of_gradients = true;   // of a collective; not of one that carries activations
    uint32_t task = 0;          // into `tasks`, of kDevice; 0 where not known
    float events = 0;           // of the host: operators and calls that the profiler noted in it
  };
  // What the operator of an operation had to do at least: each input read and each result written once.
  struct Task {
    double flops = 0, bytes = 0;
    Arithmetic arithmetic = Arithmetic::kVector;
  };
  struct Edge {
    uint32_t from = 0;
    Dependency kind = Dependency::kThread;
    bool from_begin = false;  // counts from the begin of `from`, not from its end
    int64_t lag_ns = 0;
  };

  std::vector<Node> nodes;           // every edge goes from a lower to a higher index
  std::vector<uint32_t> first_edge;  // edges into node i: edges[first_edge[i]] up to edges[first_edge[i + 1]]
  std::vector<Edge> edges;
  std::vector<uint32_t> step_ends;  // kStepEnd nodes by time; the first is the begin of the first step
  std::vector<std::string> names;
  std::vector<Task> tasks = {{}};  // the first one stands for none
  std::string device;              // as roofline/devices.h calls it; empty where it is not known
  MatrixUnits matrix_units = MatrixUnits::kUnknown;  // of the device
  std::string optimizer;                             // its class, "AdamW"; empty where it is not known
  bool compiled = false;                             // by torch.compile, at least in part
  int64_t first_step = 0;                            // Step::index of the first
  int64_t begin_ns = 0;                              // of the first node, in the recording's time
  // What remains of the time of matrix kernels without tensor cores once they run on them: at worst, as expected,
  // at best. 0 where the device is not known.
  std::array<double, 3> left_on_tensor_cores{};
  double link_bytes_per_ns =
      0;  // what the device's bus carries in one direction at best; 0 where it is not known
  bool loads_inline = false;    // the training thread fetches its batches itself
  double recorded_step_ns = 0;  // mean, of the steps in the graph
  // Median, from the begin of an operator to that of the first one within it; 0 where none was seen.
  double operator_start_ns = 0;
  int64_t assumed = 0;       // dependencies between streams that are assumed, not recorded
  int64_t contradicted = 0;  // dependencies left out, because the recorded times contradict them
};

}  // namespace fullbore::record
