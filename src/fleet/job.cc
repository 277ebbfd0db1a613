#include "fleet/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "fleet/job_use.h"
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

// What was given from the first to the last of the runs of one start of the job, of which no more is known.
Allocation Around(const RunAccount& run) {
  const int64_t start_ns = run.job_start_unix_s * kNsPerSecond;
  return {start_ns > 0 ? std::min(start_ns, run.begin_unix_ns) : run.begin_unix_ns, run.end_unix_ns, 0, ""};
}

// An allocation with its runs, by their places.
struct Held {
  Allocation allocation;
  std::vector<size_t> runs;
};

// The accounting counts whole seconds.
bool IsIn(const RunAccount& run, const Allocation& allocation) {
  return std::min(run.end_unix_ns, allocation.end_unix_ns) + kNsPerSecond >=
         std::max(run.begin_unix_ns, allocation.begin_unix_ns);
}

int64_t TogetherNs(const RunAccount& run, const Allocation& allocation) {
  return std::min(run.end_unix_ns, allocation.end_unix_ns) -
         std::max(run.begin_unix_ns, allocation.begin_unix_ns);
}

// Numbers of jobs are used again: before its newest run a job has had one allocation, and one for each restart.
void LeaveOutOlderJobs(const RunAccount& newest, std::vector<Allocation>& allocations) {
  const auto later = [&](const Allocation& each) {
    return each.begin_unix_ns > newest.begin_unix_ns + kNsPerSecond;
  };
  const auto until_newest = std::ranges::find_if(allocations, later) - allocations.begin();
  const auto older = until_newest - 1 - std::max<int64_t>(0, newest.use.restarts);
  if (older > 0) allocations.erase(allocations.begin(), allocations.begin() + older);
}

// That in which the run was for longest; none where it was in none.
Held* HolderOf(const RunAccount& run, std::span<Held> known) {
  const auto together = [&](const Held& held) { return TogetherNs(run, held.allocation); };
  const auto longest = std::ranges::max_element(known, {}, together);
  return longest != known.end() && IsIn(run, longest->allocation) ? &*longest : nullptr;
}

// The accounting leaves out parts of a second at both ends: where a run was recorded beyond its end, it began as much
// later, as far as the first run allows.
void MoveToItsRuns(Held& held, const std::vector<RunAccount>& runs) {
  int64_t last_ns = held.allocation.end_unix_ns;
  for (const size_t run : held.runs) last_ns = std::max(last_ns, runs[run].end_unix_ns);
  if (last_ns == held.allocation.end_unix_ns) return;
  const int64_t room_ns = runs[held.runs.front()].begin_unix_ns - held.allocation.begin_unix_ns;
  const int64_t later_ns =
      std::max<int64_t>(0, std::min({last_ns - held.allocation.end_unix_ns, room_ns, kNsPerSecond}));
  held.allocation.begin_unix_ns += later_ns;
  held.allocation.end_unix_ns += later_ns;
}

// Those that the accounting knows, and of the runs that are in none of them one for each start of the job.
std::vector<Held> HeldBy(const Job& job) {
  std::vector<Held> known;
  std::map<std::pair<int64_t, int64_t>, Held> inferred;  // by restarts and start
  for (const Allocation& each : job.allocations) known.push_back({each, {}});
  for (size_t i = 0; i < job.runs.size(); ++i) {
    const RunAccount& run = job.runs[i];
    if (run.job.empty()) continue;
    if (Held* held = HolderOf(run, known)) {
      held->runs.push_back(i);
      continue;
    }
    const std::pair start(run.use.restarts, run.job_start_unix_s);
    Held& held = inferred.try_emplace(start, Held{Around(run), {}}).first->second;
    held.allocation.end_unix_ns = std::max(held.allocation.end_unix_ns, run.end_unix_ns);
    held.runs.push_back(i);
  }
  for (Held& held : known) MoveToItsRuns(held, job.runs);
  for (auto& [start, held] : inferred) known.push_back(std::move(held));
  std::ranges::stable_sort(known, {}, [](const Held& each) { return each.allocation.begin_unix_ns; });
  return known;
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

  // All time that it held devices in no run: before, between and after its runs, and devices that none of them used.
  void AddHeld(const Held& held) {
    const size_t next = held.runs.empty() ? NextAfter(held.allocation.begin_unix_ns) : held.runs.front();
    if (until_ns_ > 0) AddGap(held.allocation.begin_unix_ns, next, false);
    until_ns_ = std::max(until_ns_, held.allocation.begin_unix_ns);
    size_t last = std::min(next, job_.runs.size() - 1);
    int64_t counted_ns = 0;
    const auto pay = [&](int64_t ns, const char* cause) {
      counted_ns = Sum(counted_ns, Pay(ns, cause, last, held.allocation.devices));
    };
    for (const size_t run : held.runs) {
      pay(AddGap(job_.runs[run].begin_unix_ns, run, true), run == held.runs.front() ? kBeforeTheFirst : "");
      if (job_.runs[run].end_unix_ns >= until_ns_) last = run;
      until_ns_ = std::max(until_ns_, job_.runs[run].end_unix_ns);
      counted_ns = Sum(counted_ns, job_.runs[run].given_ns);
    }
    pay(AddGap(held.allocation.end_unix_ns, held.runs.empty() ? next : held.runs.back() + 1, true),
        held.runs.empty() ? kWithoutARun : kAfterTheLast);
    const int64_t ns = held.allocation.end_unix_ns - held.allocation.begin_unix_ns;
    Add(Kind::kBetween, kWithoutARun, last, DeviceNs(ns, held.allocation.devices) - counted_ns);
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
  size_t NextAfter(int64_t unix_ns) const {
    const auto begins = [&](const RunAccount& run) { return run.begin_unix_ns >= unix_ns; };
    return static_cast<size_t>(std::ranges::find_if(job_.runs, begins) - job_.runs.begin());
  }

  // From what was looked at until then.
  int64_t AddGap(int64_t end_ns, size_t before, bool paid) {
    if (until_ns_ >= end_ns) return 0;
    job_.gaps.push_back({until_ns_, end_ns, before, paid});
    return end_ns - std::exchange(until_ns_, end_ns);
  }

  static int64_t DeviceNs(int64_t ns, int64_t devices) {
    return devices > 0 ? std::min(ns, record::kMaxNs / devices) * devices : 0;
  }

  // `devices`: 0 where not known; then those of the run.
  int64_t Pay(int64_t ns, const char* cause, size_t run, int64_t devices) {
    const int64_t device_ns =
        DeviceNs(ns, devices > 0 ? devices : std::max<int64_t>(1, job_.runs[run].devices));
    Add(Kind::kBetween, cause, run, device_ns);
    return device_ns;
  }

  Job& job_;
  int64_t until_ns_ = 0;  // what lies before is in a bar or a gap; 0 at first
};

}  // namespace

Job JobOf(std::vector<RunAccount> runs, std::vector<Allocation> allocations) {
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
  LeaveOutOlderJobs(newest, allocations);
  job.allocations = std::move(allocations);
  Waterfall waterfall(job);
  for (const Held& held : HeldBy(job)) waterfall.AddHeld(held);
  for (size_t i = 0; i < job.runs.size(); ++i) {
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
  if (bar.kind == Kind::kBetween && bar.cause == kAfterTheLast) return "after its last run";
  if (bar.kind == Kind::kBetween && bar.cause == kWithoutARun) return "held, in no run";
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
    const std::string where = gap.before < job.runs.size() ? fmt::format("before run {}", gap.before + 1)
                                                           : std::string("after the last run");
    notes.push_back(fmt::format("{} {} are in no bar: the job waited to be started again, without devices.",
                                FormatDuration(gap.end_unix_ns - gap.begin_unix_ns), where));
  }
  if (!job.allocations.empty()) {
    notes.push_back(fmt::format("Paid is all that Slurm's accounting says that it held: {}.",
                                Plural(job.allocations.size(), "allocation")));
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
  for (const Amount& each : HardlyUsedIn(job.use, !job.goes_on() && !job.runs.back().EndedBadly())) {
    notes.push_back(
        each.what == "GPUs"
            ? "No kernel ever ran on the GPUs that the job was given."
            : fmt::format("Of the {} that it asked for, half would have been enough.", each.what));
  }
  return notes;
}

}  // namespace fullbore::fleet
