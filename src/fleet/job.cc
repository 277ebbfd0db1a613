#include "fleet/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/clock.h"
#include "base/text.h"
#include "fleet/words.h"
#include "record/limits.h"

namespace fullbore::fleet {

namespace {

// As the time goes: before the steps, besides the steps, in them.
constexpr std::array kFalling = {
    Kind::kBetween, Kind::kStart,         Kind::kCompile,     Kind::kWarmUp,     Kind::kLost,
    Kind::kEnd,     Kind::kNotJudged,     Kind::kCheckpoint,  Kind::kValidation, Kind::kWaste,
    Kind::kPadding, Kind::kRecomputation, Kind::kSlowKernels, Kind::kWork,
};

int64_t Sum(int64_t a, int64_t b) { return __builtin_add_overflow(a, b, &a) ? INT64_MAX : a; }

auto IdentityOf(const RunAccount& run) { return std::tie(run.begin_unix_ns, run.id); }

void SortAndKeepEachOnce(std::vector<RunAccount>& runs) {
  std::ranges::sort(runs, [](const RunAccount& a, const RunAccount& b) {
    return std::tie(a.begin_unix_ns, a.id, b.end_unix_ns) < std::tie(b.begin_unix_ns, b.id, a.end_unix_ns);
  });
  const auto same = [](const RunAccount& a, const RunAccount& b) { return IdentityOf(a) == IdentityOf(b); };
  runs.erase(std::unique(runs.begin(), runs.end(), same), runs.end());
}

bool InOneAllocation(const RunAccount& a, const RunAccount& b) {
  return !a.job.empty() && a.use.restarts == b.use.restarts && a.job_start_unix_s == b.job_start_unix_s;
}

class Waterfall {
 public:
  explicit Waterfall(Job& job) : job_(job) {}

  void Add(Kind kind, const std::string& cause, size_t run, int64_t device_ns) {
    if (device_ns <= 0) return;
    const auto same = [&](const Bar& bar) { return bar.kind == kind && bar.cause == cause; };
    auto bar = std::ranges::find_if(job_.bars, same);
    if (bar == job_.bars.end()) bar = job_.bars.insert(bar, {kind, cause, 0, {}});
    bar->device_ns = Sum(bar->device_ns, device_ns);
    if (bar->of.empty() || bar->of.back().run != run) bar->of.push_back({run, 0});
    bar->of.back().device_ns = Sum(bar->of.back().device_ns, device_ns);
    job_.paid_ns = Sum(job_.paid_ns, device_ns);
    if (kind == Kind::kWork) job_.useful_ns = Sum(job_.useful_ns, device_ns);
  }

  // Until a run begins: since the last moment of those before it, or since its allocation began.
  void AddGap(size_t run) {
    const RunAccount& next = job_.runs[run];
    const RunAccount* before = LastEndedBefore(run);
    if (next.job.empty()) return;
    const int64_t since_ns = before ? before->end_unix_ns : 0;
    if (before && InOneAllocation(*before, next)) {
      const auto place = static_cast<size_t>(before - job_.runs.data());
      return Pay(AddGap(since_ns, next.begin_unix_ns, run, true), "", place);
    }
    const int64_t start_ns = next.job_start_unix_s * kNsPerSecond;
    if (before) AddGap(since_ns, start_ns > 0 ? start_ns : next.begin_unix_ns, run, false);
    if (start_ns > 0)
      Pay(AddGap(std::max(start_ns, since_ns), next.begin_unix_ns, run, true), kBeforeTheFirst, run);
  }

  void Order() {
    const auto place = [](const Bar& bar) {
      return std::ranges::find(kFalling, bar.kind) - kFalling.begin();
    };
    std::ranges::stable_sort(job_.bars, [&](const Bar& a, const Bar& b) {
      return place(a) != place(b) ? place(a) < place(b) : a.device_ns > b.device_ns;
    });
  }

 private:
  const RunAccount* LastEndedBefore(size_t run) const {
    const auto end = job_.runs.begin() + static_cast<std::ptrdiff_t>(run);
    const auto last = std::max_element(job_.runs.begin(), end, [](const RunAccount& a, const RunAccount& b) {
      return a.end_unix_ns < b.end_unix_ns;
    });
    return last == end ? nullptr : &*last;
  }

  int64_t AddGap(int64_t begin_ns, int64_t end_ns, size_t before, bool paid) {
    if (begin_ns >= end_ns) return 0;
    job_.gaps.push_back({begin_ns, end_ns, before, paid});
    return end_ns - begin_ns;
  }

  void Pay(int64_t ns, const char* cause, size_t run) {
    const int64_t devices = std::max<int64_t>(1, job_.runs[run].devices);
    Add(Kind::kBetween, cause, run, std::min(ns, record::kMaxNs / devices) * devices);
  }

  Job& job_;
};

Use UseOfAll(const std::vector<RunAccount>& runs) {
  const auto lasted = [](const RunAccount& run) { return run.end_unix_ns - run.begin_unix_ns; };
  Use use = std::ranges::max_element(runs, {}, lasted)->use;
  const auto most = [](auto& known, const auto& more) {
    if (known && more) known = std::max(*known, *more);
  };
  for (const RunAccount& run : runs) {
    most(use.cores_p95, run.use.cores_p95);
    most(use.memory_peak_bytes, run.use.memory_peak_bytes);
    most(use.time_used_ns, run.use.time_used_ns);
    most(use.gpus_used, run.use.gpus_used);
    use.restarts = std::max(use.restarts, run.use.restarts);
  }
  return use;
}

}  // namespace

Job JobOf(std::vector<RunAccount> runs) {
  Job job;
  SortAndKeepEachOnce(runs);
  job.runs = std::move(runs);
  const RunAccount& newest = job.runs.back();
  job.id = newest.job;
  job.name = newest.job_name;
  job.user = newest.user;
  job.account = newest.account;
  job.partition = newest.partition;
  job.device = newest.device;
  job.begin_unix_ns = job.runs.front().begin_unix_ns;
  Waterfall waterfall(job);
  for (size_t i = 0; i < job.runs.size(); ++i) {
    waterfall.AddGap(i);
    job.end_unix_ns = std::max(job.end_unix_ns, job.runs[i].end_unix_ns);
    for (const Part& part : job.runs[i].parts) waterfall.Add(part.kind, part.cause, i, part.device_ns);
  }
  waterfall.Order();
  job.use = UseOfAll(job.runs);
  job.restarts = job.use.restarts;
  return job;
}

std::string NameForPeople(const Bar& bar) {
  if (bar.kind == Kind::kWaste) return fmt::format("waiting ({})", bar.cause);
  if (bar.kind == Kind::kWork) return "useful work";
  if (bar.kind == Kind::kBetween && bar.cause == kBeforeTheFirst) return "before its first run";
  return NameForPeople(bar.kind);
}

std::string HowItEnded(const RunAccount& run) {
  if (run.cut_off) return "cut off";
  if (!run.ended) return "goes on";
  return run.exit_status.value_or(0) != 0 ? fmt::format("exit {}", *run.exit_status) : "ended";
}

std::vector<std::string> NotesOn(const Job& job) {
  std::vector<std::string> notes;
  for (const Gap& gap : job.gaps) {
    if (gap.paid) continue;
    notes.push_back(
        fmt::format("{} before run {} are in no bar: the job waited to be started again, without devices.",
                    FormatDuration(gap.end_unix_ns - gap.begin_unix_ns), gap.before + 1));
  }
  std::vector<size_t> unknown;
  for (size_t i = 0; i < job.runs.size(); ++i) {
    if (job.runs[i].lost_unknown) unknown.push_back(i + 1);
  }
  if (!unknown.empty()) {
    notes.push_back(fmt::format(
        "Run{} {} ended badly, and no checkpoint was seen: what that lost is not known, and counts as if it were kept.",
        unknown.size() == 1 ? "" : "s", Ranges(unknown)));
  }
  if (job.goes_on()) notes.push_back(fmt::format("Run {} goes on: this is how it stands.", job.runs.size()));
  for (const OverAsked& each : OverAskedIn(job.use, !job.goes_on() && !job.runs.back().EndedBadly()))
    notes.push_back(fmt::format("Of the {} that it asked for, half would have been enough.", each.what));
  if (job.use.NeverTouchedItsGpu()) notes.push_back("No kernel ever ran on the GPUs that the job was given.");
  return notes;
}

}  // namespace fullbore::fleet
