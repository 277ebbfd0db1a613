// The channel: how a training process reports to the recorder without a system call on its hot path.
//
// Every Python process that imports torch (trainers, loader workers) owns two files in the directory named by
// $FULLBORE_CHANNEL:
//
//   <pid>-<created_ns>.ring    a header of 4096 bytes, then `capacity` records of 64 bytes, mapped shared where the
//                              directory is in memory, and else written to
//   <pid>-<created_ns>.jsonl   lines of JSON for what is rare and has text: facts, loaders, source lines
//
// Only the owner writes. Record n (counted from 1) goes to slot (n - 1) % capacity and carries n in its
// last field, which is written last; so a polling reader sees each record once, and counts those that
// were overwritten before it read them. Only a file in memory (tmpfs) is mapped, and all its space is allocated before
// (posix_fallocate), because a page that cannot be written would otherwise raise SIGBUS in the training process; a
// process that cannot allocate the space goes without a channel. On a disk each record is written with a system call.
// Nothing waits for the reader: if the recorder dies, the ring simply wraps around.
//
// Rejected: a socket (a system call per event, and backpressure on the training), one text file (parsing cost
// in the trainer), inherited descriptors (Python closes them in children).
//
// All numbers are little-endian. Times are CLOCK_MONOTONIC nanoseconds. The lines of the .jsonl file are
// documented in docs/channel.md.
#pragma once

#include <cstdint>

namespace fullbore::record {

inline constexpr char kChannelMagic[8] = {'F', 'B', 'C', 'H', 'A', 'N', '1', '\0'};
inline constexpr uint32_t kChannelHeaderBytes = 4096;
inline constexpr uint32_t kChannelRecordBytes = 64;

enum class ChannelRole : uint32_t { kTrainer = 1, kLoaderWorker = 2 };

struct ChannelHeader {
  char magic[8];
  uint32_t header_bytes;
  uint32_t record_bytes;
  uint32_t capacity;
  uint32_t pid;
  int64_t created_ns;
  uint32_t role;  // ChannelRole
  int32_t rank;   // $RANK, else -1
  uint32_t parent_pid;
  int32_t worker_id;  // of a loader worker, else -1
};
static_assert(sizeof(ChannelHeader) == 48);

enum class EventKind : uint16_t {
  // The loader's `next`. id: loader; a: samples (-1 unknown, 0 no batch: the epoch ended, or, with c = 1, the
  // iterator was created well before its first `next`); b: batches ready in the queue on entry (-1 unknown);
  // c: 1 for the first of an epoch (worker start included); d: elements of the tensor by which samples are counted
  // (of `input_ids` where there are some), 0 unknown.
  kNext = 1,
  // The outermost Module call. a: 1 in training mode with gradients, 0 otherwise; or the call of a compiled function
  // that holds more than a forward pass (jax.jit): 2 of the training, 3 of something else. b: with a = 2, samples among
  // its arguments, 0 unknown; with a = 0, 1 where the framework itself says that it evaluates. c: with a = 0, what is
  // known of the pass, kPass... below.
  kForward = 2,
  // autograd.backward. a: when the first parameter's gradient was ready, 0 unknown: what follows in a
  // distributed run is the wait for the other ranks. b: of a wrapper of PyTorch's, 1 where the pass exchanged
  // gradients, 2 where that was turned off (no_sync(), set_requires_gradient_sync()); 0 unknown.
  kBackward = 3,
  // a: 1 if this ends a step (the primary optimizer's step), 0 for zero_grad and the other optimizers;
  // b: 1 if the script itself says so (fullbore.step()), and no optimizer; c: 1 if a profiler of ours slowed the
  // step down (a device window): it counts, but says nothing of the training's speed.
  kOptimizer = 4,
  // Tensor.to / Tensor.cuda to a device. a: bytes; b: 1 pinned.
  kH2d = 5,
  // A batch fetched, in a worker or inline. id: loader as its trainer numbers it, 0 unknown; a: samples |
  // slowest sample in us << 32, 0 where samples are too cheap to time one by one; b: CPU ns; c: collate ns;
  // d: ns runnable without a core, 0 unknown. For fetches below a millisecond, b and d are read for one in 16
  // and scaled from it for the others.
  kFetch = 6,
  // id: OtherKind.
  kOther = 7,
  // torch.distributed called on the training thread. id: 0; a: bytes; b: 1 if it reduces.
  kCollective = 8,
  // The line sampler, begin = end. a: line id of the .jsonl file; b: EventKind the thread was inside, 0 none;
  // c: Activity; d: 1 in the iterator that the training loop goes through, 2 in its body while it waits to receive
  // something, 3 if another process makes it. In a loader worker, with a sampler of its own, id: its loader.
  kLine = 9,
  // torch.cuda.synchronize and similar calls.
  kSync = 10,
  // CUDA events around a step. a: device ns.
  kDeviceTime = 11,
  // The device allocator. a: allocated bytes; b: reserved; c: peak allocated; d: retries.
  kMemory = 12,
  // Just before a kOptimizer that ends at the same time, in a trial that takes turns ($FULLBORE_TURNS). All since they
  // began: a: ns that the thread was ready to run, and had no core; b: CPU ns of the process; c: of the thread.
  kCores = 13,
};

// What is known of a forward pass that is not one in training mode with gradients. Neither kPassOfTrained nor
// kPassOfApart: no parameters, or not known what the optimizers hold.
inline constexpr int64_t kPassInEvaluation = 1;   // the module is: eval()
inline constexpr int64_t kPassWithGradients = 2;  // they are enabled
inline constexpr int64_t kPassOfTrained = 4;      // an optimizer holds parameters of the module
inline constexpr int64_t kPassOfApart = 8;        // it has parameters, and no optimizer holds any of them
inline constexpr int64_t kPassOfCopy = 16;        // apart, with the shapes of a module that is trained

// A compilation is recorded inside the call that it holds up.
enum class OtherKind : uint16_t { kCheckpoint = 1, kGarbageCollection = 2, kCompilation = 3 };

struct ChannelRecord {
  uint16_t kind;  // EventKind
  uint16_t id;
  uint32_t thread;  // of this process, small numbers; 0 is the first thread that recorded
  int64_t begin_ns;
  int64_t end_ns;
  int64_t a, b, c, d;
  uint64_t sequence;
};
static_assert(sizeof(ChannelRecord) == kChannelRecordBytes);

}  // namespace fullbore::record
