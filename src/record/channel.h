// The channel: how a training process tells the recorder what it does, without a system call in the hot path.
//
// Every Python process that imports torch (trainers, loader workers) owns two files in the directory named by
// $FULLBORE_CHANNEL:
//
//   <pid>-<created_ns>.ring    a header of 4096 bytes, then `capacity` records of 64 bytes, mapped shared
//   <pid>-<created_ns>.jsonl   lines of JSON for what is rare and has text: facts, loaders, source lines
//
// The owner alone writes. Record n (from 1) goes to slot (n - 1) % capacity and carries n in its last field,
// which is written last; so a reader that polls sees each record once, and counts those that were overwritten
// before it came. All space is allocated before the file is mapped (posix_fallocate), for a full disk would
// otherwise be a SIGBUS in the training process; a process that cannot allocate goes without a channel.
// Nothing waits for the reader: when the recorder dies, the ring just turns.
//
// Rejected: a socket (a system call an event, and backpressure on the training), one file of text (parsing
// cost in the trainer), inherited descriptors (Python closes them in children).
//
// All numbers are little-endian. Times are CLOCK_MONOTONIC nanoseconds. Lines of the .jsonl file are
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
  kNext =
      1,  // the loader's `next`. id: loader; a: samples (-1 unknown, 0 no batch: the epoch ended, or, with
          // c = 1, the iterator was made well before its first `next`); b: batches ready in the queue when
          // entered (-1 unknown); c: 1 for the first of an epoch (worker start included); d: tokens
  kForward = 2,   // outermost Module call. a: 1 in training mode with gradients, 0 in evaluation
  kBackward = 3,  // autograd.backward. a: when the first parameter's gradient was ready, 0 unknown: what
                  // follows in a distributed run is the wait for the other ranks
  kOptimizer =
      4,       // a: 1 when this ends a step (the primary optimizer's step), 0 for zero_grad and the others
  kH2d = 5,    // Tensor.to / Tensor.cuda to a device. a: bytes; b: 1 pinned
  kFetch = 6,  // a batch fetched, in a worker or inline. id: loader as its trainer numbers it, 0 unknown;
               // a: samples | slowest sample in us << 32, 0 where they are too cheap to be timed one by one;
               // b: CPU ns; c: collate ns; d: ns runnable without a core, 0 unknown. Of fetches below a
               // millisecond, b and d are read for one in 16 and scaled from it for the others
  kOther = 7,  // id: OtherKind
  kCollective = 8,  // torch.distributed called on the training thread. id: 0; a: bytes
  kLine = 9,  // line sampler, begin = end. a: line id of the .jsonl file; b: EventKind the thread was inside,
              // 0 none
  kSync = 10,        // torch.cuda.synchronize and friends
  kDeviceTime = 11,  // CUDA events around a step. a: device ns
  kMemory = 12,      // device allocator. a: allocated bytes; b: reserved; c: peak allocated; d: retries
};

enum class OtherKind : uint16_t { kCheckpoint = 1, kGarbageCollection = 2 };

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
