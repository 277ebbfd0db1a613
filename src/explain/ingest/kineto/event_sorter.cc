#include "explain/ingest/kineto/event_sorter.h"

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "explain/ingest/kineto/collective_args.h"
#include "explain/ingest/kineto/event_category.h"
#include "explain/ingest/span_names.h"
#include "timeline/device/noticed.h"

namespace fullbore::ingest::kineto {

using timeline::CallKind;
using timeline::Collective;
using timeline::DeviceOp;
using timeline::HostCall;
using timeline::Lane;
using timeline::SpanKind;

namespace {

// The user's own frame in "torch/utils/data/dataloader.py(518): __next__;train.py(42): <module>", innermost
// first.
std::string_view UserFrame(std::string_view stack) {
  for (const auto frame : Split(stack, ';')) {
    if (KindOfFrame(frame) == SpanKind::kPython) return frame;
  }
  return {};
}

uint64_t Correlation(std::string_view value) {
  const int64_t id = Integer(value).value_or(0);
  return id > 0 ? static_cast<uint64_t>(id) : 0;
}

// Kineto with roctracer (ROCm before 6.3) writes no "correlation" but gives a call and its kernel the same
// "External id". The highest bit keeps those apart from true correlation ids, which count from 1.
uint64_t ExternalCorrelation(std::string_view value) {
  constexpr uint64_t kExternal = uint64_t{1} << 63;
  const uint64_t id = Correlation(value);
  return id == 0 ? 0 : id | kExternal;
}

// Of a grid: [2432, 1, 1]. hipExtModuleLaunchKernel counts threads, of which a block has several.
uint16_t Blocks(std::string_view grid, std::string_view threads_of_a_block = {}) {
  int64_t blocks = FirstElements(grid);
  const int64_t threads = threads_of_a_block.empty() ? 1 : FirstElements(threads_of_a_block);
  if (blocks <= 0 || threads <= 0) return 0;
  blocks = (blocks + threads - 1) / threads;
  return static_cast<uint16_t>(std::min<int64_t>(blocks, timeline::kMaxBlocks));
}

}  // namespace

EventSorter::EventSorter(timeline::DeviceTrace* trace, bool stacks)
    : trace_(trace), stacks_(stacks), operators_(&trace->operators), recomputed_(trace) {}

void EventSorter::Take(const RawEvent& event) {
  ++trace_->events;
  switch (event.phase) {
    case 'X':
      TakeComplete(event);
      break;
    case 'B':
      paired_.Begin(event);
      break;
    case 'E':
      TakeEnd(event);
      break;
    case 'M':
      census_.TakeMetadata(event);
      break;
    case 'i':
    case 'I':
      if (event.name == "[memory]") TakeMemory(event);
      break;
    case 'C':
      TakeCounter(event);
      break;
    default:  // flows repeat the correlation ids
      break;
  }
}

void EventSorter::TakeComplete(const RawEvent& event) {
  const Category category = CategoryNamed(event.category);
  if (category == Category::kIgnored) {
    if (!IsOfTheProfiler(event.category)) census_.CountUnread(event.category);
    return;
  }
  const bool device = category == Category::kKernel || category == Category::kCopy;
  const auto times = TimesOf(event, device);
  if (!times) return;
  switch (category) {
    case Category::kKernel:
    case Category::kCopy:
      TakeDeviceOp(event, *times, category == Category::kKernel);
      break;
    case Category::kCall:
      census_.Count(Census::kCalls);
      TakeCall(event, *times);
      break;
    case Category::kOperator:
      census_.Count(Census::kOperators);
      TakeOperator(event, *times, false);
      break;
    case Category::kAnnotation:
      census_.Count(Census::kRanges);
      TakeOperator(event, *times, true);
      break;
    case Category::kPython:
      census_.Count(Census::kFunctions);
      TakePython(event, *times);
      break;
    case Category::kKernelCounters:
      TakeKernelCounters(event, *times);
      break;
    case Category::kSync:
      TakeSync(event, *times);
      break;
    case Category::kDeviceAnnotation:
      named_steps_.OfferOnDevice(event.name, times->begin_ns, times->end_ns);
      break;
    case Category::kIgnored:
      break;
  }
}

void EventSorter::TakeEnd(const RawEvent& event) {
  if (const auto complete = paired_.End(event)) TakeComplete(*complete);
}

std::optional<EventSorter::Times> EventSorter::TimesOf(const RawEvent& event, bool device) {
  constexpr int64_t kMaxEventNs = int64_t{24} * 3600 * kNsPerSecond;
  const auto leave_out = [&](const char* why) {
    ++trace_->noticed.left_out;
    ++trace_->left_out[std::string(device ? "device operations " : "host events ") + why];
    return std::nullopt;
  };
  const auto begin = NanosecondsOfMicros(event.ts);
  if (!begin) return leave_out("without a readable time");
  const auto duration = event.dur.empty() ? std::optional<int64_t>(0) : NanosecondsOfMicros(event.dur);
  if (!duration) return leave_out("without a readable duration");
  if (*duration < 0) return leave_out("of negative duration");
  int64_t end = 0;
  if (*duration > kMaxEventNs || __builtin_add_overflow(*begin, *duration, &end)) {
    return leave_out("of a day or longer");
  }
  return Times{*begin, end};
}

void EventSorter::TakeDeviceOp(const RawEvent& event, const Times& times, bool kernel) {
  DeviceOp op;
  op.begin_ns = times.begin_ns;
  op.end_ns = times.end_ns;
  op.kernel = kernel;
  op.name = NameOf(event.name);
  const std::string_view name = trace_->names[op.name];
  op.lane = kernel ? timeline::ClassifyKernel(name) : timeline::ClassifyCopy(name);
  std::string_view device = event.pid;
  std::string_view stream = event.tid;
  int64_t bytes = -1;
  uint64_t external = 0;
  CollectiveArgs collective;
  Members args(event.args);
  while (args.Next()) {
    if (args.key() == "correlation")
      op.correlation = Correlation(args.value());
    else if (args.key() == "External id")
      external = ExternalCorrelation(args.value());
    else if (args.key() == "grid")
      op.blocks = Blocks(args.value());
    else if (args.key() == "device")
      device = args.value();
    else if (args.key() == "stream")
      stream = args.value();
    else if (args.key() == "bytes")
      bytes = Integer(args.value()).value_or(-1);
    else if (op.lane == Lane::kComm)
      collective.Take(args.key(), args.value());
  }
  if (op.correlation == 0) op.correlation = external;
  if (op.correlation == 0)
    ++trace_->left_out["device operations without a correlation id (kept, but not tied to the host)"];
  op.stream = StreamOf(device, stream);
  ++trace_->device_ops[Integer(device).value_or(0)];
  if (op.lane == Lane::kComm && !collective.name.empty()) {
    op.detail = static_cast<uint32_t>(trace_->collectives.size());
    trace_->collectives.push_back({NameOf(collective.name), NameOf(collective.group), collective.bytes(),
                                   static_cast<int32_t>(collective.group_size),
                                   collective.peer(collective.name)});
  } else if (!kernel) {
    op.detail = static_cast<uint32_t>(trace_->copy_bytes.size());
    trace_->copy_bytes.push_back(bytes);
  }
  trace_->ops.push_back(op);
}

void EventSorter::TakeCall(const RawEvent& event, const Times& times) {
  constexpr int64_t kLongCallNs = 100'000;  // shorter ones of no known kind (queries) explain no idle time
  // How Kineto calls what is younger than its table of calls, as NCCL's launches (cudaLaunchKernelExC) once were.
  constexpr std::string_view kUnnamed = "INVALID";
  HostCall call;
  call.begin_ns = times.begin_ns;
  call.end_ns = times.end_ns;
  call.kind = timeline::ClassifyCall(event.name);
  if (event.name.find("EventRecord") != std::string_view::npos) TakeEventCall(event, times);
  if (timeline::BeginsCapture(event.name)) ++trace_->noticed.captures;
  const bool is_short = times.end_ns - times.begin_ns < kLongCallNs;
  if (call.kind == CallKind::kOther && is_short && event.name != kUnnamed) return;
  call.name = NameOf(event.name);
  call.thread = ThreadOf(event);
  const bool grid_in_call = event.name.starts_with("hip");  // roctracer notes it here, CUPTI with the kernel
  uint64_t external = 0;
  std::string_view grid, block;
  Members args(event.args);
  while (args.Next()) {
    if (args.key() == "correlation")
      call.correlation = Correlation(args.value());
    else if (args.key() == "External id")
      external = ExternalCorrelation(args.value());
    else if (grid_in_call && (args.key() == "grid" || args.key() == "grid dim"))
      grid = args.value();
    else if (grid_in_call && (args.key() == "block" || args.key() == "block dim"))
      block = args.value();
    if (call.correlation != 0 && !grid_in_call) break;
  }
  if (call.correlation == 0) call.correlation = external;
  const bool in_threads = event.name.find("ExtModuleLaunch") != std::string_view::npos;
  if (!in_threads)
    call.blocks = Blocks(grid);
  else if (!block.empty())
    call.blocks = Blocks(grid, block);
  trace_->calls.push_back(call);
}

void EventSorter::TakeOperator(const RawEvent& event, const Times& times, bool annotation) {
  constexpr std::string_view kStep = "ProfilerStep#";
  if (event.name.starts_with(kStep)) return TakeStepMark(event, times, event.name.substr(kStep.size()));
  const SpanKind kind = KindOfName(event.name, annotation ? SpanKind::kAnnotation : SpanKind::kOp);
  if (kind == SpanKind::kCollectiveCall) TakeCollectiveCall(event, times);
  if (kind == SpanKind::kLoader && trace_->facts.count("loader_processes") == 0) TakeLoaderFacts(event);
  if (kind == SpanKind::kAnnotation)
    named_steps_.Offer(event.name, times.begin_ns, times.end_ns, ThreadOf(event));
  if (kind == SpanKind::kOp) TakeShapes(event, times);
  AddSpan(event, times, kind);
}

void EventSorter::TakeShapes(const RawEvent& event, const Times& times) {
  const timeline::OperatorKind kind = timeline::KindOfOperator(event.name);
  if (kind == timeline::OperatorKind::kNone) return;
  operators_.Take({NameOf(event.name), kind, times.begin_ns, times.end_ns, ThreadOf(event)}, event.args);
}

void EventSorter::Finish() {
  recomputed_.Finish();
  std::move(named_steps_).PutInto(trace_);
  if (const int64_t unpaired = paired_.LeftOut(); unpaired > 0) {
    trace_->left_out["events of which only the beginning or the end is there"] = unpaired;
    trace_->noticed.left_out += unpaired;
  }
  if (!trace_->has_device_activity() && trace_->steps.empty())
    trace_->facts["trace_holds"] = timeline::JsonText(census_.Held());
  if (trace_->has_device_activity()) trace_->operators.Drop(timeline::OperatorKind::kTable);
  if (trace_->operators.left_out > 0)
    trace_->left_out["operators with ever new shapes (kept, but without their work)"] =
        trace_->operators.left_out;
  if (!operator_starts_ns_.empty()) {
    const auto middle =
        operator_starts_ns_.begin() + static_cast<std::ptrdiff_t>(operator_starts_ns_.size() / 2);
    std::nth_element(operator_starts_ns_.begin(), middle, operator_starts_ns_.end());
    trace_->operator_start_ns = *middle;
  }
  trace_->Finish();
}

// "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": num_workers=0 by its name.
void EventSorter::TakeLoaderFacts(const RawEvent& event) {
  if (event.name.find("DataLoaderIter") == std::string_view::npos) return;
  const bool single = event.name.find("SingleProcess") != std::string_view::npos;
  trace_->facts["loader_processes"] = timeline::JsonText(single ? "single" : "workers");
  Members args(event.args);
  while (args.Next()) {
    if (args.key() != "Call stack") continue;
    const std::string_view frame = UserFrame(args.value());
    if (!frame.empty()) trace_->facts["loader_where"] = timeline::JsonText(Unescaped(frame));
  }
}

void EventSorter::TakePython(const RawEvent& event, const Times& times) {
  named_steps_.OfferFrame(event.name, times.begin_ns, times.end_ns, 0);
  const auto kind = KindOfFrame(event.name);
  if (kind)
    AddSpan(event, times, *kind);
  else if (stacks_)
    AddSpan(event, times, SpanKind::kPython);
}

void EventSorter::TakeStepMark(const RawEvent& event, const Times& times, std::string_view number) {
  trace_->steps.push_back({times.begin_ns, times.end_ns, Integer(number).value_or(0), ThreadOf(event)});
}

void EventSorter::TakeCollectiveCall(const RawEvent& event, const Times& times) {
  CollectiveArgs collective;
  Members args(event.args);
  while (args.Next()) collective.Take(args.key(), args.value());
  std::string_view kind = collective.name;
  if (kind.empty() && event.name != "record_param_comms") kind = event.name.substr(event.name.find(':') + 1);
  trace_->collective_calls.push_back({times.begin_ns,
                                      times.end_ns,
                                      ThreadOf(event),
                                      {NameOf(kind), NameOf(collective.group), collective.bytes(),
                                       static_cast<int32_t>(collective.group_size), collective.peer(kind)}});
}

// Only the outermost of nested operators is kept: the one that the user called.
void EventSorter::AddSpan(const RawEvent& event, const Times& times, SpanKind kind) {
  const uint16_t thread = ThreadOf(event);
  const auto swallows = [](SpanKind k) {
    return k == SpanKind::kOp || k == SpanKind::kBackward || k == SpanKind::kCollectiveCall;
  };
  while (swallows(kind) && !trace_->spans.empty()) {
    const timeline::HostSpan& last = trace_->spans.back();
    if (last.thread != thread || !swallows(last.kind)) break;
    if (kind == SpanKind::kOp && last.begin_ns <= times.begin_ns && last.end_ns >= times.end_ns) {
      if (last.kind == SpanKind::kBackward) recomputed_.Take(event, times.begin_ns, times.end_ns, last);
      return NoteInner(times.begin_ns, trace_->spans.back());
    }
    const bool inside = last.begin_ns >= times.begin_ns && last.end_ns <= times.end_ns;
    if (last.kind != SpanKind::kOp || !inside) break;
    trace_->spans.resize_down(trace_->spans.size() - 1);  // PyTorch 1.8 writes the inner ones first
  }
  trace_->spans.push_back({times.begin_ns, times.end_ns, NameOf(event.name), thread, kind});
}

void EventSorter::NoteInner(int64_t begin_ns, timeline::HostSpan& outer) {
  constexpr size_t kEnough = 100'000;
  if (outer.inner == 0 && operator_starts_ns_.size() < kEnough)
    operator_starts_ns_.push_back(begin_ns - outer.begin_ns);
  outer.inner += outer.inner < UINT8_MAX;
}

void EventSorter::TakeEventCall(const RawEvent& event, const Times& times) {
  Members args(event.args);
  while (args.Next()) {
    if (args.key() != "correlation") continue;
    trace_->event_calls.push_back({times.begin_ns, Correlation(args.value())});
    return;
  }
}

// Recorded with `enable_cuda_sync_events`. A stream or an event that is not known has the number -1.
void EventSorter::TakeSync(const RawEvent& event, const Times& times) {
  using timeline::WaitKind;
  timeline::WaitRecord wait;
  wait.begin_ns = times.begin_ns;
  std::string_view device = event.pid, stream = event.tid, on_stream;
  Members args(event.args);
  while (args.Next()) {
    if (args.key() == "correlation")
      wait.correlation = Correlation(args.value());
    else if (args.key() == "device")
      device = args.value();
    else if (args.key() == "stream")
      stream = args.value();
    else if (args.key() == "wait_on_stream")
      on_stream = args.value();
    else if (args.key() == "wait_on_cuda_event_record_corr_id")
      wait.event_recorded = Correlation(args.value());
  }
  const auto known = [&](std::string_view number) {
    return Integer(number).value_or(-1) < 0 ? timeline::WaitRecord::kNoStream : StreamOf(device, number);
  };
  wait.stream = known(stream);
  wait.on_stream = known(on_stream);
  if (event.name.starts_with("Stream Wait"))
    wait.kind = WaitKind::kStreamEvent;
  else if (event.name.starts_with("Stream"))
    wait.kind = WaitKind::kStream;
  else if (event.name.starts_with("Event"))
    wait.kind = WaitKind::kEvent;
  trace_->waits.push_back(wait);
}

void EventSorter::TakeMemory(const RawEvent& event) {
  std::string_view device;
  int64_t type = 0;
  int64_t allocated = -1;
  int64_t reserved = -1;
  Members args(event.args);
  while (args.Next()) {
    if (args.key() == "Device Type")
      type = Integer(args.value()).value_or(0);
    else if (args.key() == "Device Id")
      device = args.value();
    else if (args.key() == "Total Allocated")
      allocated = Integer(args.value()).value_or(-1);
    else if (args.key() == "Total Reserved")
      reserved = Integer(args.value()).value_or(-1);
  }
  const auto t = NanosecondsOfMicros(event.ts);
  if (type == 0 || !t) return;  // the host's memory
  if (allocated >= 0)
    AddReading("device_memory_allocated/" + std::string(device), *t, static_cast<double>(allocated));
  if (reserved >= 0)
    AddReading("device_memory_reserved/" + std::string(device), *t, static_cast<double>(reserved));
}

void EventSorter::TakeCounter(const RawEvent& event) {
  const auto t = NanosecondsOfMicros(event.ts);
  if (!t) return;
  census_.Count(Census::kCounters);
  Members args(event.args);
  while (args.Next()) {
    const auto value = ParseDouble(args.value());
    if (value) AddReading("counter/" + Unescaped(event.name) + "/" + Unescaped(args.key()), *t, *value);
  }
}

void EventSorter::TakeKernelCounters(const RawEvent& event, const Times& times) {
  Members args(event.args);
  while (args.Next()) {
    const auto value = ParseDouble(args.value());
    if (!value) continue;
    trace_->kernel_counters.push_back(
        {times.begin_ns, counted_kernels_, NameOf(event.name), NameOf(args.key()), *value});
  }
  ++counted_kernels_;
}

// At most one reading per millisecond, the highest: what matters are memory peaks, and the count stays
// bounded.
void EventSorter::AddReading(const std::string& counter, int64_t t_ns, double value) {
  auto& readings = trace_->counters[counter];
  if (!readings.empty() && t_ns - readings.back().t_ns < kNsPerMs && t_ns >= readings.back().t_ns) {
    readings.back().value = std::max(readings.back().value, value);
    return;
  }
  readings.push_back({t_ns, value});
}

timeline::NameId EventSorter::NameOf(std::string_view raw) {
  const bool plain =
      std::all_of(raw.begin(), raw.end(), [](char c) { return c >= 0x20 && c < 0x7f && c != '\\'; });
  return plain ? trace_->names.Find(raw) : trace_->names.Find(Unescaped(raw));
}

uint16_t EventSorter::ThreadOf(const RawEvent& event) {
  constexpr size_t kMaxThreads = 4096;
  key_.assign(event.pid).append("/").append(event.tid);
  if (key_ == last_thread_) return last_thread_index_;
  auto [place, added] = threads_.try_emplace(key_, static_cast<uint16_t>(trace_->threads.size()));
  if (added && trace_->threads.size() >= kMaxThreads) {
    place->second = kMaxThreads - 1;
  } else if (added) {
    trace_->threads.push_back(Unescaped(key_));
    if (trace_->pid == 0) trace_->pid = Integer(event.pid).value_or(0);
  }
  last_thread_ = key_;
  last_thread_index_ = place->second;
  return last_thread_index_;
}

uint16_t EventSorter::StreamOf(std::string_view device, std::string_view stream) {
  constexpr size_t kMaxStreams = 4096;
  key_.assign(device).append("/").append(stream);
  auto [place, added] = streams_.try_emplace(key_, static_cast<uint16_t>(trace_->streams.size()));
  if (added && trace_->streams.size() >= kMaxStreams) {
    place->second = kMaxStreams - 1;
  } else if (added) {
    trace_->streams.push_back(Unescaped(key_));
  }
  return place->second;
}

}  // namespace fullbore::ingest::kineto
