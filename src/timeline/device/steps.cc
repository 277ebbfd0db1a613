#include "timeline/device/steps.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/utf8.h"

namespace fullbore::timeline {
namespace {

// When the work that was in flight as the recording began is done: on each stream what precedes the first
// operation whose launch was recorded.
int64_t EndOfWorkInFlight(const DeviceTrace& trace) {
  std::vector<int64_t> in_flight(trace.streams.size() + 1, INT64_MIN);
  std::vector<bool> launch_seen(trace.streams.size() + 1, false);
  int64_t end_ns = INT64_MIN;
  for (const DeviceOp& op : trace.ops) {
    if (launch_seen[op.stream]) continue;
    if (op.call == kNone) {
      in_flight[op.stream] = std::max(in_flight[op.stream], op.end_ns);
    } else {
      launch_seen[op.stream] = true;
      end_ns = std::max(end_ns, in_flight[op.stream]);
    }
  }
  return end_ns;
}

// Host steps to device steps: each ends when the last operation launched in it ends, or
// later if the host waited longer.
std::vector<StepBounds> EndOnDevice(const DeviceTrace& trace, const std::vector<StepMark>& marks) {
  std::vector<int64_t> device_end(marks.size(), INT64_MIN);
  int64_t before_first = EndOfWorkInFlight(trace);
  for (const DeviceOp& op : trace.ops) {
    if (op.call == kNone) continue;
    const auto after = std::partition_point(marks.begin(), marks.end(), [&](const StepMark& mark) {
      return mark.begin_ns <= op.launch_begin_ns;
    });
    if (after == marks.begin()) {
      before_first = std::max(before_first, op.end_ns);
      continue;
    }
    const auto i = static_cast<size_t>(std::prev(after) - marks.begin());
    if (op.launch_begin_ns < marks[i].end_ns) device_end[i] = std::max(device_end[i], op.end_ns);
  }
  std::vector<StepBounds> steps;
  for (size_t i = 0; i < marks.size(); ++i) {
    // The first step begins where the work of the one before it ends, of which no mark was recorded.
    int64_t begin = std::max(marks[i].begin_ns, before_first);
    if (i > 0) {
      const bool follows = marks[i].number == marks[i - 1].number + 1;
      begin = follows ? steps.back().end_ns : std::max(steps.back().end_ns, begin);
    }
    steps.push_back({begin, std::max({begin, marks[i].end_ns, device_end[i]})});
  }
  return steps;
}

// From the end of one optimizer step to the next. Of several optimizers the one that steps most often counts;
// of equals, the last in the loop.
std::vector<StepMark> MarksOfOptimizer(const DeviceTrace& trace) {
  std::map<NameId, std::vector<int64_t>> ends;
  for (const HostSpan& span : trace.spans) {
    if (span.kind == SpanKind::kOptimizer) ends[span.name].push_back(span.end_ns);
  }
  const std::vector<int64_t>* best = nullptr;
  for (const auto& [name, times] : ends) {
    if (best == nullptr || times.size() > best->size() ||
        (times.size() == best->size() && times.back() > best->back())) {
      best = &times;
    }
  }
  std::vector<StepMark> marks;
  for (size_t i = 1; best != nullptr && i < best->size(); ++i) {
    marks.push_back({(*best)[i - 1], (*best)[i], static_cast<int64_t>(i), trace.main_thread()});
  }
  return marks;
}

// A kernel that recurs after a nearly constant number of other kernels marks the period of the loop. The
// rarest such kernel has the longest period, which is the step: anything more frequent is a layer.
struct Period {
  NameId name = 0;
  std::vector<size_t> arrivals;  // positions among the compute kernels
};

constexpr size_t kMinPeriods = 5;
constexpr double kPeriodTolerance = 0.02;  // both from the design of the online collector
// Fewer periods than that must also hold the same kernels in the same order, and so many that no layer that
// happens to come in pairs passes for a step.
constexpr size_t kMinEqualPeriods = 2;
constexpr size_t kMinKernelsOfEqualPeriods = 20;
constexpr double kMinEqualKernels = 0.95;

bool HoldTheSameKernels(const std::vector<size_t>& arrivals, const std::vector<const DeviceOp*>& kernels) {
  if (arrivals[1] - arrivals[0] < kMinKernelsOfEqualPeriods) return false;
  size_t equal = 0;
  for (size_t i = 2; i < arrivals.size(); ++i) {
    for (size_t at = arrivals[i - 1]; at < arrivals[i]; ++at) {
      const size_t before = at - arrivals[i - 1] + arrivals[i - 2];
      equal += before < arrivals[i - 1] && kernels[before]->name == kernels[at]->name ? 1 : 0;
    }
  }
  return static_cast<double>(equal) >= kMinEqualKernels * static_cast<double>(arrivals.back() - arrivals[1]);
}

bool IsPeriodic(const std::vector<size_t>& arrivals, const std::vector<const DeviceOp*>& ops) {
  const size_t kernels = ops.size();
  if (arrivals.size() <= kMinEqualPeriods) return false;
  const double period =
      static_cast<double>(arrivals.back() - arrivals.front()) / static_cast<double>(arrivals.size() - 1);
  if (period < 2 ||
      static_cast<double>(arrivals.back() - arrivals.front()) < 0.5 * static_cast<double>(kernels))
    return false;
  for (size_t i = 1; i < arrivals.size(); ++i) {
    const double off = static_cast<double>(arrivals[i] - arrivals[i - 1]) - period;
    if (off > std::max(1.0, period * kPeriodTolerance) || -off > std::max(1.0, period * kPeriodTolerance))
      return false;
  }
  return arrivals.size() > kMinPeriods || HoldTheSameKernels(arrivals, ops);
}

std::vector<StepBounds> StepsByPeriod(const DeviceTrace& trace, NameId* anchor) {
  std::map<NameId, Period> periods;
  std::vector<const DeviceOp*> kernels;
  for (const DeviceOp& op : trace.ops) {
    if ((Bit(op.lane) & kComputeLanes) == 0) continue;
    periods[op.name].arrivals.push_back(kernels.size());
    kernels.push_back(&op);
  }
  const Period* best = nullptr;
  for (auto& [name, period] : periods) {
    period.name = name;
    if (!IsPeriodic(period.arrivals, kernels)) continue;
    if (best == nullptr || period.arrivals.size() < best->arrivals.size() ||
        (period.arrivals.size() == best->arrivals.size() && period.arrivals[0] < best->arrivals[0])) {
      best = &period;
    }
  }
  std::vector<StepBounds> steps;
  for (size_t i = 1; best != nullptr && i < best->arrivals.size(); ++i) {
    steps.push_back({kernels[best->arrivals[i - 1]]->begin_ns, kernels[best->arrivals[i]]->begin_ns});
  }
  if (best != nullptr) *anchor = best->name;
  return steps;
}

// How much of a step the device worked, and how much of it may have been work that was not recorded.
struct StepWork {
  int64_t busy_ns = 0;
  int64_t bare_ns = 0;
};

std::vector<StepWork> WorkOf(const DeviceTrace& trace, const std::vector<StepBounds>& steps) {
  std::vector<StepWork> work(steps.size());
  const auto add = [&](int64_t begin_ns, int64_t end_ns, int64_t StepWork::*part) {
    auto i = static_cast<size_t>(
        std::partition_point(steps.begin(), steps.end(),
                             [&](const StepBounds& step) { return step.end_ns <= begin_ns; }) -
        steps.begin());
    for (; i < steps.size() && steps[i].begin_ns < end_ns; ++i)
      work[i].*part += std::min(end_ns, steps[i].end_ns) - std::max(begin_ns, steps[i].begin_ns);
  };
  for (const DeviceOp& op : trace.ops) add(op.begin_ns, op.end_ns, &StepWork::busy_ns);
  for (const auto& stretch : trace.noticed.bare) add(stretch.begin_ns, stretch.end_ns, &StepWork::bare_ns);
  return work;
}

// A step at either end of a recording that says nothing: the profiler was stopped as it began, or did not record yet
// what the device did.
void LeaveOutStepsWithoutWork(const DeviceTrace& trace, FoundSteps* found) {
  if (!trace.has_device_activity()) return;
  const std::vector<StepWork> work = WorkOf(trace, found->steps);
  const auto says_nothing = [&](size_t i) {
    const int64_t wall_ns = found->steps[i].end_ns - found->steps[i].begin_ns;
    return work[i].busy_ns == 0 || (work[i].bare_ns > wall_ns / 2 && work[i].busy_ns < work[i].bare_ns);
  };
  size_t first = 0, past = work.size();
  while (first < past && says_nothing(first)) ++first;
  while (past > first && says_nothing(past - 1)) --past;
  if (first == past) return;  // then there is no other
  for (size_t i = 0; i < work.size(); ++i) {
    if (i >= first && i < past) continue;
    ++(work[i].bare_ns > 0 ? found->bare : found->empty);
  }
  found->steps.erase(found->steps.begin() + static_cast<std::ptrdiff_t>(past), found->steps.end());
  found->steps.erase(found->steps.begin(), found->steps.begin() + static_cast<std::ptrdiff_t>(first));
}

}  // namespace

FoundSteps FindSteps(const DeviceTrace& trace) {
  FoundSteps found;
  if (!trace.steps.empty()) {
    found.steps = EndOnDevice(trace, trace.steps);
    found.marked = true;
    found.by = trace.noticed.steps_by == record::StepsBy::kRanges ? record::StepsBy::kRanges
                                                                  : record::StepsBy::kMarks;
    LeaveOutStepsWithoutWork(trace, &found);
    return found;
  }
  if (const auto marks = MarksOfOptimizer(trace); !marks.empty()) {
    found.steps = EndOnDevice(trace, marks);
    found.marked = true;
    found.by = record::StepsBy::kOptimizer;
    LeaveOutStepsWithoutWork(trace, &found);
    found.how =
        "the trace has no ProfilerStep: steps are taken from the end of one optimizer step to the next";
    return found;
  }
  if (!trace.has_device_activity()) {
    found.how =
        "the trace marks no steps and holds no device activity: there is nothing to divide into shares";
    return found;
  }
  NameId anchor = 0;
  found.steps = StepsByPeriod(trace, &anchor);
  if (!found.steps.empty()) {
    found.by = record::StepsBy::kPeriod;
    found.how = "the trace marks no steps: they were found by periodicity, " +
                std::to_string(found.steps.size()) + " periods of the kernel '" +
                std::string(Utf8Front(trace.names[anchor], 80)) +
                "'; where a step repeats one block many times, such a period may be one block";
    return found;
  }
  int64_t end = trace.ops[0].end_ns;
  for (const DeviceOp& op : trace.ops) end = std::max(end, op.end_ns);
  found.steps.push_back({trace.ops[0].begin_ns, end});
  found.how = "the trace marks no steps and its kernels have no period: all of it counts as one step";
  return found;
}

void NoticeSteps(const DeviceTrace& trace, const FoundSteps& found, record::Noticed* noticed) {
  noticed->steps_by = found.by;
  noticed->empty_steps = found.empty;
  noticed->bare_steps = found.bare;
  if (!trace.has_device_activity()) return;
  const int64_t begin_ns = trace.ops[0].begin_ns, end_ns = begin_ns + noticed->span_ns;
  for (const StepBounds& step : found.steps)
    noticed->stepped_ns +=
        std::max<int64_t>(0, std::min(step.end_ns, end_ns) - std::max(step.begin_ns, begin_ns));
}

}  // namespace fullbore::timeline
