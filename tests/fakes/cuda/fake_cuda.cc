// Stands in for libcuda.so.1: one device whose memory is the host's. Work on a stream is queued and done only
// when somebody waits for it, and then no more than CUDA's rules demand: memory reused too early has the
// wrong bytes in every test run rather than once in a thousand.
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace {

constexpr int kNotReady = 600;

struct FakeStream;

struct FakeEvent {
  FakeStream* stream = nullptr;  // where it was recorded last
  int recorded = 0, fired = 0;   // how often
};

// Either work to do or an event to wait for.
struct Work {
  std::function<void()> act;
  FakeEvent* awaited = nullptr;
  int times = 0;
};

struct FakeStream {
  std::deque<Work> queue;
};

std::recursive_mutex mutex;  // protects everything
// Never destroyed: as with the driver, a thread that outlives main may still call.
auto& default_stream = *new FakeStream;
auto& streams = *new std::map<FakeStream*, std::unique_ptr<FakeStream>>;
int live = 0;  // allocations, streams and events not yet released

FakeStream& Of(void* stream) {
  return stream == nullptr ? default_stream : *static_cast<FakeStream*>(stream);
}

// The least that makes the event fire: its stream up to there, and what that waits for on other streams.
void RunUntilFired(FakeEvent& event, int times) {
  while (event.fired < times && !event.stream->queue.empty()) {
    const Work work = std::move(event.stream->queue.front());
    event.stream->queue.pop_front();
    if (work.awaited != nullptr) RunUntilFired(*work.awaited, work.times);
    if (work.act) work.act();
  }
}

// Everything; created streams run ahead of the default stream as far as they can.
void RunAll() {
  const auto run = [](FakeStream& stream) {
    while (!stream.queue.empty()) {
      const Work work = std::move(stream.queue.front());
      stream.queue.pop_front();
      if (work.awaited != nullptr) RunUntilFired(*work.awaited, work.times);
      if (work.act) work.act();
    }
  };
  for (auto& [key, stream] : streams) run(*stream);
  run(default_stream);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int cuInit(unsigned) { return 0; }
EXPORT int cuGetErrorString(int status, const char** text) {
  *text = status == 2 ? "out of memory" : "a fault of the fake";
  return 0;
}
EXPORT int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
EXPORT int cuDeviceGetCount(int* count) { return *count = 1, 0; }
EXPORT int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &default_stream, 0; }
EXPORT int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
EXPORT int cuCtxPushCurrent_v2(void*) { return 0; }
EXPORT int cuCtxPopCurrent_v2(void** context) { return *context = &default_stream, 0; }

EXPORT int cuMemHostAlloc(void** data, size_t bytes, unsigned) {
  const std::lock_guard lock(mutex);
  ++live;
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *data == nullptr ? 2 : 0;
}
EXPORT int cuMemFreeHost(void* data) {
  const std::lock_guard lock(mutex);
  --live;
  std::free(data);
  return 0;
}
EXPORT int cuMemAlloc_v2(unsigned long long* data, size_t bytes) {
  const std::lock_guard lock(mutex);
  ++live;
  *data = reinterpret_cast<unsigned long long>(std::malloc(bytes));
  return *data == 0 ? 2 : 0;
}
EXPORT int cuMemFree_v2(unsigned long long data) {  // waits for all work, as the driver does
  const std::lock_guard lock(mutex);
  RunAll();
  --live;
  std::free(reinterpret_cast<void*>(data));
  return 0;
}
EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  const std::lock_guard lock(mutex);
  Of(stream).queue.push_back({[=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); }});
  return 0;
}
EXPORT int cuStreamCreate(void** stream, unsigned) {
  const std::lock_guard lock(mutex);
  ++live;
  auto made = std::make_unique<FakeStream>();
  *stream = made.get();
  streams[made.get()] = std::move(made);
  return 0;
}
EXPORT int cuStreamDestroy_v2(void* stream) {
  const std::lock_guard lock(mutex);
  --live;
  RunAll();
  streams.erase(static_cast<FakeStream*>(stream));
  return 0;
}
EXPORT int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const std::lock_guard lock(mutex);
  auto* const awaited = static_cast<FakeEvent*>(event);
  Of(stream).queue.push_back({nullptr, awaited, awaited->recorded});
  return 0;
}
EXPORT int cuEventCreate(void** event, unsigned) {
  const std::lock_guard lock(mutex);
  ++live;
  *event = new FakeEvent;
  return 0;
}
EXPORT int cuEventDestroy_v2(
    void* event) {  // a driver may do so with work outstanding; the fake finishes it first
  const std::lock_guard lock(mutex);
  RunAll();
  --live;
  delete static_cast<FakeEvent*>(event);
  return 0;
}
EXPORT int cuEventRecord(void* event, void* stream) {
  const std::lock_guard lock(mutex);
  auto* const recorded = static_cast<FakeEvent*>(event);
  recorded->stream = &Of(stream);
  recorded->stream->queue.push_back({[recorded, time = ++recorded->recorded] { recorded->fired = time; }});
  return 0;
}
EXPORT int cuEventQuery(void* event) {
  const std::lock_guard lock(mutex);
  const auto* const asked = static_cast<FakeEvent*>(event);
  return asked->fired >= asked->recorded ? 0 : kNotReady;
}
EXPORT int cuEventSynchronize(void* event) {
  const std::lock_guard lock(mutex);
  auto& awaited = *static_cast<FakeEvent*>(event);
  RunUntilFired(awaited, awaited.recorded);
  return 0;
}

// For tests: a kernel on `stream` that reads device memory, and a wait for everything queued.
EXPORT void fake_cuda_queue_read(void* to, unsigned long long from, size_t bytes, void* stream) {
  const std::lock_guard lock(mutex);
  Of(stream).queue.push_back({[=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); }});
}
EXPORT void fake_cuda_finish() {
  const std::lock_guard lock(mutex);
  RunAll();
}
EXPORT int fake_cuda_live() {
  const std::lock_guard lock(mutex);
  return live;
}
