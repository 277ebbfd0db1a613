#include "explain/ingest/kineto/event_sorter.h"

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "explain/ingest/kineto/rank_label.h"
#include "explain/ingest/span_names.h"
#include "timeline/device_noticed.h"

namespace fullbore::ingest::kineto {

using timeline::CallKind;
using timeline::Collective;
using timeline::DeviceOp;
using timeline::HostCall;
using timeline::Lane;
using timeline::SpanKind;

namespace {

// Category names depend on the version of PyTorch: 1.8 wrote "Kernel" and "Operator", since 1.10 they are
// "kernel" and "cpu_op".
enum class Category : uint8_t {
  kIgnored,
  kKernel,
  kCopy,
  kCall,
  kOperator,
  kAnnotation,
  kPython,
  kKernelCounters,
  kSync,
  kDeviceAnnotation
};

Category CategoryNamed(std::string_view name) {
  if (name.empty()) return Category::kIgnored;
  switch (name[0]) {
    case 'c':
      if (name == "cpu_op") return Category::kOperator;
      if (name == "cuda_runtime" || name == "cuda_driver") return Category::kCall;
      if (name == "cuda_profiler_range") return Category::kKernelCounters;
      if (name == "cuda_sync") return Category::kSync;
      break;
    case 'k':
    case 'K':
      if (name.substr(1) == "ernel") return Category::kKernel;
      break;
    case 'g':
      if (name == "gpu_memcpy" || name == "gpu_memset") return Category::kCopy;
      if (name == "gpu_user_annotation") return Category::kDeviceAnnotation;
      break;
    case 'M':
      if (name == "Memcpy" || name == "Memset") return Category::kCopy;
      break;
    case 'u':
      if (name == "user_annotation") return Category::kAnnotation;
      break;
    case 'O':
      if (name == "Operator") return Category::kOperator;
      break;
    case 'p':
    case 'P':
      if (name.substr(1) == "ython_function" || name == "Python") return Category::kPython;
      break;
    case 'R':
      if (name == "Runtime") return Category::kCall;
      break;
    default:
      break;
  }
  return name.ends_with("_runtime") || name.ends_with("_driver") ? Category::kCall : Category::kIgnored;
}

// Which says nothing about the training.
bool IsOfTheProfiler(std::string_view category) {
  return category == "Trace" || category == "overhead" || category == "gpu_user_annotation";
}

// Bytes per element of the types that collectives carry, 0 for an unknown name.
int64_t ElementBytes(std::string_view type) {
  struct Type {
    std::string_view name;
    int64_t bytes;
  };
  constexpr Type kTypes[] = {{"Double", 8},        {"double", 8},      {"Long", 8},      {"long int", 8},
                             {"long", 8},          {"Float", 4},       {"float", 4},     {"Int", 4},
                             {"int", 4},           {"Half", 2},        {"c10::Half", 2}, {"BFloat16", 2},
                             {"c10::BFloat16", 2}, {"Short", 2},       {"Byte", 1},      {"unsigned char", 1},
                             {"Char", 1},          {"signed char", 1}, {"Bool", 1},      {"bool", 1},
                             {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}};
  for (const auto& known : kTypes) {
    if (known.name == type) return known.bytes;
  }
  return 0;
}

// The product of the first list of numbers in "[[394241], [3, 4]]": the first tensor's elements.
int64_t FirstElements(std::string_view dims) {
  const size_t begin = dims.find_first_of("0123456789");
  if (begin == std::string_view::npos) return -1;
  const size_t end = std::min(dims.find(']', begin), dims.size());
  int64_t product = 1;
  for (const auto number : Split(dims.substr(begin, end - begin), ',')) {
    const auto n = ParseInt(Trim(number));
    if (!n || *n < 0 || *n > (int64_t{1} << 40) || product > (int64_t{1} << 40)) return -1;
    product *= *n;
  }
  return product;
}

std::string_view FirstString(std::string_view list) {  // of ["float", ""]
  const size_t begin = list.find('"');
  if (begin == std::string_view::npos) return {};
  const size_t end = list.find('"', begin + 1);
  return end == std::string_view::npos ? std::string_view{} : list.substr(begin + 1, end - begin - 1);
}

// What the arguments of a kernel, of "nccl:..." or of record_param_comms say about a collective.
struct CollectiveArgs {
  std::string_view name, type, dims, dim_type, group;
  int64_t in = -1, out = -1, group_size = -1, source = -1, destination = -1;

  void Take(std::string_view key, std::string_view value) {
    if (key == "Collective name")
      name = value;
    else if (key == "dtype")
      type = value;
    else if (key == "In msg nelems")
      in = Integer(value).value_or(-1);
    else if (key == "Out msg nelems")
      out = Integer(value).value_or(-1);
    else if (key == "Src Rank")
      source = Integer(value).value_or(-1);
    else if (key == "Dst Rank")
      destination = Integer(value).value_or(-1);
    else if (key == "Group size")
      group_size = Integer(value).value_or(-1);
    else if (key == "Process Group Name")
      group = value;
    else if (key == "Input Dims")
      dims = value;
    else if (key == "Input type")
      dim_type = FirstString(value);
  }
  // Of a send, where it goes to; of a receive, where it comes from.
  int32_t peer(std::string_view kind) const {
    const int64_t rank = kind.find("send") != std::string_view::npos   ? destination
                         : kind.find("recv") != std::string_view::npos ? source
                                                                       : -1;
    return rank < 0 || rank > (1 << 30) ? -1 : static_cast<int32_t>(rank);
  }
  int64_t bytes() const {
    const int64_t elements = std::max(in, out);
    if (elements >= 0 && ElementBytes(type) > 0) return elements * ElementBytes(type);
    const int64_t listed = dims.empty() ? -1 : FirstElements(dims);
    return listed >= 0 && ElementBytes(dim_type) > 0 ? listed * ElementBytes(dim_type) : -1;
  }
};

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

struct EventSorter::OtherRank {
  explicit OtherRank(bool stacks) : sorter(&trace, stacks) { sorter.of_other_rank_ = true; }

  timeline::DeviceTrace trace;
  EventSorter sorter;
};

EventSorter::EventSorter(timeline::DeviceTrace* trace, bool stacks)
    : trace_(trace), stacks_(stacks), operators_(&trace->operators) {}

EventSorter::~EventSorter() = default;

void EventSorter::Take(const RawEvent& event) {
  if (TakeOfOtherRank(event)) return;
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

bool EventSorter::TakeOfOtherRank(const RawEvent& event) {
  constexpr size_t kMaxRanks = 4096;
  if (of_other_rank_ || event.pid.empty() || (event.pid[0] >= '0' && event.pid[0] <= '9')) return false;
  const auto labelled = SplitRankLabel(event.pid);
  if (!labelled) return false;
  auto found = other_ranks_.find(labelled->label);
  if (found == other_ranks_.end()) {
    if (other_ranks_.size() == kMaxRanks) return false;
    found = other_ranks_.emplace(std::string(labelled->label), std::make_unique<OtherRank>(stacks_)).first;
  }
  RawEvent own = event;
  own.pid = labelled->rest;
  if (const auto thread = SplitRankLabel(event.tid); thread && thread->label == labelled->label)
    own.tid = thread->rest;
  found->second->sorter.Take(own);
  return true;
}

// What the file says of all of them holds for each.
void EventSorter::FinishOtherRanks() {
  std::vector<std::string_view> labels;
  for (const auto& [label, other] : other_ranks_) labels.push_back(label);
  const std::vector<int> ranks = RanksOfLabels(labels);
  size_t i = 0;
  for (auto& [label, other] : other_ranks_) {
    timeline::DeviceTrace& trace = other->trace;
    trace.facts.insert(trace_->facts.begin(), trace_->facts.end());
    trace.devices = trace_->devices;
    trace.multiprocessors = trace_->multiprocessors;
    trace.base_ns = trace_->base_ns;
    trace.world_size = trace_->world_size;
    trace.noticed.breaks_off_at = trace_->noticed.breaks_off_at;
    other->sorter.Finish();
    trace.rank = ranks[i++];
    trace_->others.push_back(std::move(trace));
  }
  if (trace_->others.empty() || trace_->has_device_activity() || !trace_->calls.empty() ||
      !trace_->spans.empty())
    return;
  // All events belong to one of them: the first stands for the file.
  timeline::DeviceTrace first = std::move(trace_->others.front());
  first.others = std::move(trace_->others);
  first.others.erase(first.others.begin());
  first.notes.insert(first.notes.begin(), trace_->notes.begin(), trace_->notes.end());
  for (const auto& [what, count] : trace_->left_out) first.left_out[what] += count;
  first.notes.push_back("the file holds the traces of " + std::to_string(other_ranks_.size()) +
                        " ranks, told apart by the labels of their processes");
  *trace_ = std::move(first);
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
  HostCall call;
  call.begin_ns = times.begin_ns;
  call.end_ns = times.end_ns;
  call.kind = timeline::ClassifyCall(event.name);
  if (event.name.find("EventRecord") != std::string_view::npos) TakeEventCall(event, times);
  if (timeline::BeginsCapture(event.name)) ++trace_->noticed.captures;
  if (call.kind == CallKind::kOther && times.end_ns - times.begin_ns < kLongCallNs) return;
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
  FinishOtherRanks();
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
    if (kind == SpanKind::kOp && last.begin_ns <= times.begin_ns && last.end_ns >= times.end_ns)
      return NoteInner(times.begin_ns, trace_->spans.back());
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

bool EventSorter::Wants(std::string_view key) {
  return key == "distributedInfo" || key == "deviceProperties" || key == "baseTimeNanoseconds" ||
         key == "baseTimeNanosec" || key == "traceName" || key.ends_with("_version") || key == "with_stack" ||
         key == "profile_memory" || key == "record_shapes";
}

void EventSorter::TakeProperty(std::string_view key, std::string_view value) {
  const std::string name(key);
  if (name.starts_with("baseTimeNanosec")) {
    trace_->base_ns = Integer(value).value_or(0);
  } else if (name == "distributedInfo") {
    Members info(value);
    while (info.Next()) {
      const auto number = Integer(info.value());
      if (info.key() == "rank" && number) trace_->rank = static_cast<int>(*number);
      if (info.key() == "world_size" && number) trace_->world_size = static_cast<int>(*number);
      if (info.key() == "backend") trace_->facts["backend"] = timeline::JsonText(Unescaped(info.value()));
    }
  } else if (name == "deviceProperties") {
    size_t at = 0;  // a flat list of flat objects
    while ((at = value.find('{', at)) != std::string_view::npos) {
      Members device(value.substr(at));
      std::string_view called;
      int64_t multiprocessors = 0;
      while (device.Next()) {
        if (device.key() == "name") called = device.value();
        if (device.key() == "numSms") multiprocessors = Integer(device.value()).value_or(0);
      }
      if (!called.empty()) {
        trace_->devices.push_back(Unescaped(called));
        trace_->multiprocessors.push_back(multiprocessors);
      }
      const size_t next = value.find('}', at);
      if (next == std::string_view::npos) break;
      at = next;
    }
  } else if (Integer(value)) {
    trace_->facts[name] = std::string(value);
  }
}

}  // namespace fullbore::ingest::kineto
