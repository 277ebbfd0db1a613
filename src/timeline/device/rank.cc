#include "timeline/device/rank.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/text.h"
#include "timeline/device/graph.h"
#include "timeline/device/host.h"
#include "timeline/device/none.h"
#include "timeline/device/order.h"
#include "timeline/device/shares.h"
#include "timeline/device/steps.h"
#include "timeline/device/tables.h"
#include "timeline/device/timeline.h"

namespace fullbore::timeline {
namespace {

// A run keeps the first, the slowest and regular stretches of steps; a trace is short and has few steps.
constexpr size_t kMaxSteps = 20'000;

// The number of the device that is judged.
int64_t NumberOfDevice(const DeviceTrace& trace, const DeviceShares& shares) {
  const auto op =
      std::find_if(trace.ops.begin(), trace.ops.end(), [&](const DeviceOp& o) { return shares.Judges(o); });
  if (op == trace.ops.end() || op->stream >= trace.streams.size()) return 0;
  const std::string& stream = trace.streams[op->stream];
  return ParseInt(stream.substr(0, stream.find('/'))).value_or(0);
}

// How long each device was busy, the judged one first, and how long at least two were at once.
void NoticeDevices(const DeviceTrace& trace, const DeviceShares& shares, record::Noticed* noticed) {
  if (shares.judged_streams.empty()) return;
  const std::vector<uint16_t> device_of = DevicesOfStreams(trace);
  std::vector<int64_t> busy_ns(device_of.size()), until_ns(device_of.size(), INT64_MIN);
  int64_t any_until_ns = INT64_MIN, any_ns = 0;
  int judged = 0;
  for (const DeviceOp& op : trace.ops) {
    const uint16_t device = device_of[op.stream];
    if (shares.Judges(op)) judged = device;
    busy_ns[device] += std::max<int64_t>(0, op.end_ns - std::max(op.begin_ns, until_ns[device]));
    until_ns[device] = std::max(until_ns[device], op.end_ns);
    any_ns += std::max<int64_t>(0, op.end_ns - std::max(op.begin_ns, any_until_ns));
    any_until_ns = std::max(any_until_ns, op.end_ns);
  }
  std::rotate(busy_ns.begin(), busy_ns.begin() + judged, busy_ns.begin() + judged + 1);
  for (const int64_t ns : busy_ns) {
    if (ns > 0) noticed->each_busy_ns.push_back(ns);
    noticed->together_ns += ns;
  }
  noticed->together_ns -= any_ns;  // where more than two work at once, that counts more than once
}

// Devices whose work hardly ever overlaps work in turn.
constexpr double kInTurn = 0.1;

std::string NoteOnDevices(const DeviceTrace& trace, const DeviceShares& shares,
                          const record::Noticed& noticed) {
  std::string note = "the trace holds operations of " + std::to_string(noticed.devices) +
                     " devices of one process: shares are of device " +
                     std::to_string(NumberOfDevice(trace, shares));
  int64_t busy_ns = 0;
  for (size_t i = 0; i < std::min<size_t>(noticed.each_busy_ns.size(), 8); ++i) {
    busy_ns += noticed.each_busy_ns[i];
    note += i == 0 ? ", which works " : i == 1 ? " of the time (the others: " : ", ";
    note +=
        FormatPercent(static_cast<double>(noticed.each_busy_ns[i]) / static_cast<double>(noticed.span_ns));
  }
  note += ")";
  if (static_cast<double>(noticed.together_ns) < kInTurn * static_cast<double>(busy_ns))
    note += "; they work one after the other";
  return note;
}

void TakeTotals(const DeviceTrace& trace, const DeviceShares& shares, record::RankInfo* info) {
  const DeviceTotals& totals = shares.totals;
  info->span_ns = shares.end_ns - shares.begin_ns;
  info->busy_ns = totals.busy_ns;
  info->compute_ns = totals.compute_ns;
  info->comm_ns = totals.comm_ns;
  info->comm_exposed_ns = totals.comm_exposed_ns;
  info->comm_overlapped_ns = totals.comm_overlapped_ns;
  info->copy_ns = totals.copy_ns;
  info->copy_exposed_ns = totals.copy_exposed_ns;
  info->kernels = std::count_if(trace.ops.begin(), trace.ops.end(),
                                [&](const DeviceOp& op) { return op.kernel && shares.Judges(op); });
  for (int lane = 0; lane < kLaneCount; ++lane) {
    const int64_t ns = totals.lane_ns[static_cast<size_t>(lane)];
    if (ns > 0 && ((1U << lane) & kComputeLanes) != 0) {
      info->kernel_class_ns[std::string(Name(static_cast<Lane>(lane)))] = ns;
    }
  }
}

std::vector<record::Series> SeriesOf(const DeviceTrace& trace) {
  std::vector<record::Series> all;
  for (const auto& [name, readings] : trace.counters) {
    record::Series series;
    const size_t slash = name.find('/');
    const std::string label = name.substr(slash + 1);
    series.key.name = name.substr(0, slash);
    if (series.key.name == "counter") {
      series.key.unit = "count";
      series.key.labels["counter"] = label;
    } else {
      series.key.unit = "bytes";
      series.key.labels["gpu"] = label;
    }
    for (const CounterReading& reading : readings) series.readings.push_back({reading.t_ns, reading.value});
    std::stable_sort(series.readings.begin(), series.readings.end(),
                     [](const auto& a, const auto& b) { return a.t_ns < b.t_ns; });
    all.push_back(std::move(series));
  }
  return all;
}

// Of the median time: small and typical. At least one step.
size_t MedianStep(const std::vector<StepBounds>& steps) {
  std::vector<size_t> order(steps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
  const auto wall_ns = [&](size_t i) { return steps[i].end_ns - steps[i].begin_ns; };
  std::nth_element(order.begin(), middle, order.end(),
                   [&](size_t a, size_t b) { return wall_ns(a) < wall_ns(b); });
  return *middle;
}

// The mark of the first step: steps at the ends may have been left out, and each ends no sooner than its mark.
std::optional<size_t> MarkOfFirst(const DeviceTrace& trace, const std::vector<StepBounds>& steps) {
  for (size_t first = 0; first + steps.size() <= trace.steps.size(); ++first) {
    bool fits = true;
    for (size_t i = 0; i < steps.size() && fits; ++i) {
      const StepMark& mark = trace.steps[first + i];
      fits = steps[i].end_ns >= mark.end_ns && steps[i].begin_ns >= mark.begin_ns;
    }
    if (fits) return first;
  }
  return std::nullopt;
}

// What a serving engine did in the steps, as its marks say.
std::vector<record::ServedPhase> ServedIn(const DeviceTrace& trace, const FoundSteps& found) {
  std::array<record::ServedPhase, record::kServingPhaseCount> phases;
  const auto first = MarkOfFirst(trace, found.steps);
  if (trace.noticed.engine.empty() || !found.marked || !first) return {};
  for (size_t i = 0; i < found.steps.size(); ++i) {
    const StepMark& mark = trace.steps[*first + i];
    record::ServedPhase& phase = phases[static_cast<size_t>(mark.phase)];
    if (phase.iterations++ == 0) phase.tokens = 0;
    phase.phase = mark.phase;
    phase.ns += found.steps[i].end_ns - found.steps[i].begin_ns;
    if (mark.tokens < 0) phase.tokens.reset();
    if (phase.tokens) *phase.tokens += mark.tokens;
  }
  std::vector<record::ServedPhase> served;
  for (const record::ServedPhase& phase : phases) {
    if (phase.iterations > 0 && phase.phase != record::ServingPhase::kUnknown) served.push_back(phase);
  }
  return served;
}

void TakeNotes(const DeviceTrace& trace, const DeviceShares& shares, RankResult* result) {
  result->notes.insert(result->notes.end(), trace.notes.begin(), trace.notes.end());
  for (const auto& [what, count] : trace.left_out) {
    result->notes.push_back("left out: " + FormatCount(static_cast<double>(count)) + " " + what);
  }
  if (shares.unexplained_idle > 0) {
    result->notes.push_back(
        FormatCount(static_cast<double>(shares.unexplained_idle)) +
        " times the device was idle before an operation whose launch is not in the trace; the cause "
        "is taken from the main thread where that is recorded");
  }
  if (result->info.noticed.each_busy_ns.size() > 1)
    result->notes.push_back(NoteOnDevices(trace, shares, result->info.noticed));
}

}  // namespace

RankResult SummariseRank(const DeviceTrace& trace, std::optional<size_t> shown) {
  RankResult result;
  record::RankInfo& info = result.info;
  info.pid = trace.pid;
  info.facts = trace.facts;
  info.noticed = trace.noticed;
  info.device_activity = trace.has_device_activity();
  const FoundSteps found = FindSteps(trace);
  info.facts["steps_marked"] = found.marked ? "true" : "false";
  NoticeSteps(trace, found, &info.noticed);
  info.noticed.served = ServedIn(trace, found);
  const HostActivity host(trace);
  if (!found.steps.empty()) {
    const size_t step = shown && *shown < found.steps.size() ? *shown : MedianStep(found.steps);
    info.timeline = TimelineOf(trace, host, found.steps[step]);
    info.timeline->step = static_cast<int64_t>(step);
  }
  DeviceShares shares;
  if (info.device_activity) {
    const auto& line = info.timeline;
    shares = ShareDeviceTime(trace, host, found.steps,
                             line ? StepBounds{line->begin_ns, line->end_ns} : StepBounds{});
    if (info.timeline) info.timeline->shares = std::move(shares.spans);
    TakeTotals(trace, shares, &info);
    info.tables = TablesOf(trace, host, shares);
    info.graph = GraphOf(trace, host, found.steps);
    NoticeDevices(trace, shares, &info.noticed);
    const int64_t device = NumberOfDevice(trace, shares);
    info.device = "cuda:" + std::to_string(device);
    if (device >= 0 && static_cast<size_t>(device) < trace.devices.size()) {
      info.facts["gpu"] = JsonText(trace.devices[static_cast<size_t>(device)]);
    }
    result.begin_ns = shares.begin_ns;
    result.end_ns = shares.end_ns;
  } else {
    info.device = "cpu";
    shares.steps = StepsOfHost(trace, found.steps);
  }
  if (!shares.steps.empty()) {
    const int64_t begin = shares.steps.front().end_ns - shares.steps.front().wall_ns;
    result.begin_ns = result.end_ns == 0 ? begin : std::min(result.begin_ns, begin);
    result.end_ns = std::max(result.end_ns, shares.steps.back().end_ns);
  }
  info.windows = WindowsOf(shares.steps);
  if (shares.steps.size() > kMaxSteps) shares.steps.resize(kMaxSteps);
  info.steps = std::move(shares.steps);
  result.series = SeriesOf(trace);
  result.comm_exposed = std::move(shares.comm_exposed);
  if (found.marked && !found.how.empty()) result.notes.push_back(found.how);  // else a condition says it
  TakeNotes(trace, shares, &result);
  return result;
}

}  // namespace fullbore::timeline
