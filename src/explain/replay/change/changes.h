// The single changes, by what they change. Each is stateless; `change.h` says what its members mean.
#pragma once

#include <cstdint>
#include <optional>

#include "explain/replay/change/change.h"

namespace fullbore::replay {

// host.cc
const Change* NoSync();                // no-sync
const Change* KeptMemory();            // allocator
const Change* CudaGraphs();            // graphs
const Change* FusedOptimizer();        // fused-optimizer
const Change* Workers(int count = 0);  // workers, workers=4; nullptr beyond kMaxWorkers
inline constexpr int kMaxWorkers = 64;
const Change* NoCheckpoint();         // checkpoint
const Change* NoValidation();         // validation
const Change* NoGarbageCollection();  // garbage-collection

// copies.cc
const Change* PinnedMemory();  // pin
const Change* SideStream();    // side-stream
const Change* FewerBytes();    // bytes

// kernels.cc
const Change* Compile();          // compile
const Change* LowerPrecision();   // precision
const Change* NoRecomputation();  // no-recompute

inline bool IsOfBackward(record::Phase phase) {
  return phase == record::Phase::kBackward || phase == record::Phase::kRecomputation;
}
inline bool IsOfPasses(record::Phase phase) {
  return phase == record::Phase::kForward || IsOfBackward(phase);
}
inline bool IsCollective(const record::StepGraph::Node& node) {
  return node.work == record::Work::kDevice && node.lane == record::Lane::kComm;
}
// What a data parallel wrapper exchanges, rather than the model itself.
inline bool IsOfGradients(const record::StepGraph::Node& node) {
  return IsCollective(node) && node.of_gradients;
}

// The call that launched an operation; nothing where it was not recorded.
std::optional<uint32_t> LaunchOf(const record::StepGraph& graph, uint32_t node);
// A call that is not made: it takes no time, and the host's way to it and on from it takes so much less, if it took so much.
inline constexpr int64_t kAllOfTheWay = INT64_MAX;
void LeaveOutCall(uint32_t call, int64_t way_ns, record::StepGraph& graph);

// device.cc
const Change* OtherDevice(
    std::string_view name);  // device=MI300X; nullptr for one that the table does not have

// overlap.cc
const Change* Overlap();  // overlap

// comm.cc
const Change* NoStraggler();  // straggler
const Change* FasterComm();   // comm
// The numbered ones: nullptr for less than 1 and beyond the limit.
const Change* FasterLinks(int times);   // links=4
const Change* Accumulation(int steps);  // accumulate=8
const Change* Buckets(int megabytes);   // bucket=25
inline constexpr int kMaxLinks = 64, kMaxAccumulation = 64, kMaxBucketMb = 1024;

}  // namespace fullbore::replay
