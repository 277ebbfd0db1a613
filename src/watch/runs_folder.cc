#include "watch/runs_folder.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "explain/diagnose/diagnose.h"

namespace fullbore::watch {

namespace {

// Network file systems tell nobody what another machine writes.
constexpr int64_t kListPauseNs = 10 * kNsPerSecond;
constexpr int64_t kLongListNs = kNsPerSecond / 4;
constexpr int64_t kSavePauseNs = 30 * kNsPerSecond;
// Of the runs that ended unseen, so old and so many are looked at once more.
constexpr int64_t kRecentNs = 24 * 3600 * kNsPerSecond;
constexpr int kMostMissed = 200;
constexpr int64_t kTryAgainNs = 10 * kNsPerSecond;
// What is written into a log goes unnoticed: live runs are looked at anyway.
constexpr uint32_t kNoticed = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR;

// What a list shows of a live run, as its newest stage says.
record::RunSummary SummaryNow(const KnownRun& known, const LiveRun& run) {
  record::RunSummary summary = known.summary;
  const record::Stage& seen = run.window().stages.back();
  if (seen.id != summary.stages.back().id) {  // one has begun since the list was made
    record::Stage& begun = summary.stages.emplace_back();
    begun.id = seen.id;
    begun.name = seen.name;
    begun.command = seen.command;
    begun.directory = seen.directory;
    begun.begin_ns = run.begin_ns();
  }
  record::Stage& newest = summary.stages.back();
  newest.end_ns = seen.end_ns;
  newest.state = seen.state;
  newest.exit_status = seen.exit_status;
  newest.out_of_memory = seen.out_of_memory;
  summary.steps = std::max(summary.steps, run.steps());
  return summary;
}

}  // namespace

RunsFolder::RunsFolder(const std::vector<std::string>& directories, Budget budget, KeepsIndex keeps)
    : budget_(budget),
      keeps_(keeps),
      side_(budget.judge_limit_ns),
      notify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      watches_(directories.size(), -1) {
  for (const std::string& directory : directories) indexes_.push_back(std::make_unique<RunIndex>(directory));
}

RunsFolder::~RunsFolder() { Save(); }

void RunsFolder::Save() {
  if (keeps_ == KeepsIndex::kNo) return;
  for (const auto& index : indexes_) index->Save();
}

// Whether a name in one of the directories has changed. A directory that came later is noticed from then on.
bool RunsFolder::Notice() {
  if (!notify_.valid()) return false;
  for (size_t i = 0; i < indexes_.size(); ++i) {
    if (watches_[i] < 0)
      watches_[i] = inotify_add_watch(notify_.get(), indexes_[i]->directory().c_str(), kNoticed);
  }
  bool noticed = false;
  alignas(inotify_event) char events[4096];
  while (read(notify_.get(), events, sizeof events) > 0) noticed = true;
  return noticed;
}

void RunsFolder::Tick(int64_t now_ns, int64_t wall_ns) {
  const bool over = std::ranges::any_of(followed_, [](const auto& each) { return each.second->run.ended(); });
  if (Notice() || over || now_ns >= next_list_ns_) {
    const int64_t before_ns = MonotonicNs();
    List(wall_ns);
    // One that took so long has left runs for the next.
    next_list_ns_ = MonotonicNs() - before_ns > kLongListNs ? now_ns : now_ns + kListPauseNs;
  }
  for (auto& [name, followed] : followed_) Look(name, *followed, now_ns);
  if (judging_) TakeJudgement(now_ns);
  if (!judging_ && now_ns >= next_judge_ns_) JudgeOneEnded(now_ns);
  if (now_ns >= next_save_ns_) {
    Save();
    next_save_ns_ = now_ns + kSavePauseNs;
  }
}

void RunsFolder::List(int64_t wall_ns) {
  runs_.clear();
  where_.clear();
  for (size_t i = 0; i < indexes_.size(); ++i) {
    indexes_[i]->Update(wall_ns);
    for (const auto& [in_index, run] : indexes_[i]->runs()) {
      const std::string name = where_.contains(in_index) ? in_index + "~" + std::to_string(i + 1) : in_index;
      where_[name] = {indexes_[i].get(), in_index};
      runs_.emplace_back(name, &run);
    }
  }
  std::stable_sort(runs_.begin(), runs_.end(), [](const auto& a, const auto& b) {
    return a.second->summary.wall_begin_ns > b.second->summary.wall_begin_ns;
  });
  FollowLive();
  if (on_look && is_owed) CatchUp(wall_ns);
}

void RunsFolder::CatchUp(int64_t wall_ns) {
  int missed = 0;
  for (const auto& [name, known] : runs_) {
    if (!met_.insert(name).second || known->state == RunState::kRunning) continue;
    if (wall_ns - known->stamp.changed_ns > kRecentNs || ++missed > kMostMissed) continue;
    LiveRun run(known->summary.path);
    if (is_owed(run.path()) && run.LookAtWindow()) on_look(name, run, /*over=*/true);
  }
  std::erase_if(met_, [this](const std::string& name) { return !where_.contains(name); });
}

void RunsFolder::FollowLive() {
  for (const auto& [name, run] : runs_) {
    if (run->state == RunState::kRunning && !followed_.contains(name))
      followed_.emplace(name, std::make_unique<Followed>(run->summary.path));
  }
  for (auto at = followed_.begin(); at != followed_.end();) {
    const KnownRun* known = Find(at->first);
    if (known && known->state == RunState::kRunning) {
      ++at;
      continue;
    }
    // The last seconds, which no look has seen.
    (void)at->second->run.LookAtWindow();
    if (on_look && at->second->run.seen()) on_look(at->first, at->second->run, /*over=*/true);
    at = followed_.erase(at);
  }
}

// Half of the budget is for the windows, half for looks at all of a run.
int64_t RunsFolder::PauseNs(int64_t cost_ns, int64_t least_ns) const {
  const double all = static_cast<double>(cost_ns) * static_cast<double>(followed_.size());
  return std::max(least_ns, static_cast<int64_t>(all / (budget_.of_a_core / 2)));
}

void RunsFolder::Look(const std::string& name, Followed& followed, int64_t now_ns) {
  const Where& where = where_.at(name);
  if (now_ns >= followed.window_due_ns) {
    const int64_t before_ns = ThreadCpuNs();
    const auto seen = followed.run.LookAtWindow();
    followed.window_due_ns = now_ns + PauseNs(ThreadCpuNs() - before_ns, budget_.window_pause_ns);
    if (seen) {
      where.index->PutSummary(where.name, SummaryNow(*Find(name), followed.run));
      if (on_look) on_look(name, followed.run, /*over=*/false);
    }
  }
  if (now_ns >= followed.all_due_ns) {
    const int64_t before_ns = ThreadCpuNs();
    if (followed.run.LookAtAll()) where.index->Judge(where.name, followed.run.judgement());
    malloc_trim(0);  // a long run took tens of megabytes
    followed.all_due_ns = now_ns + PauseNs(ThreadCpuNs() - before_ns, budget_.all_pause_ns);
  }
}

void RunsFolder::JudgeOneEnded(int64_t now_ns) {
  if (budget_.of_a_core_for_ended <= 0) return;
  const auto next = std::ranges::find_if(runs_, [](const auto& each) {
    return each.second->state != RunState::kRunning && !each.second->judgement;
  });
  if (next == runs_.end()) return;
  auto judging = std::make_shared<Judging>();
  judging->name = next->first;
  const bool begun = side_.Begin([judging, path = next->second->summary.path] {
    const int64_t before_ns = ThreadCpuNs();
    // Of a file that cannot be read: nothing, once.
    if (const auto recording = record::ReadRun(path))
      judging->judgement = Judgement::Of(diagnose::Diagnose(*recording), *recording);
    malloc_trim(0);
    judging->cpu_ns = ThreadCpuNs() - before_ns;
  });
  if (!begun) {  // no thread can be made now, or one is stuck
    (void)side_.Poll();
    next_judge_ns_ = now_ns + kTryAgainNs;
    return;
  }
  judging_ = std::move(judging);
  TakeJudgement(now_ns);
}

void RunsFolder::TakeJudgement(int64_t now_ns) {
  const SideThread::State state = side_.Poll(budget_.waits_ns);
  if (state == SideThread::State::kBusy) return;
  const std::shared_ptr<Judging> judging = std::exchange(judging_, nullptr);
  int64_t cpu_ns = judging->cpu_ns;
  Judgement judgement;
  if (state == SideThread::State::kDone) {
    judgement = std::move(judging->judgement);
  } else {
    cpu_ns = side_.limit_ns();
    judgement.verdict = fmt::format("could not be judged in {}", FormatDuration(side_.limit_ns()));
  }
  if (const auto where = where_.find(judging->name); where != where_.end())
    where->second.index->Judge(where->second.name, std::move(judgement));
  next_judge_ns_ = now_ns + static_cast<int64_t>(static_cast<double>(cpu_ns) / budget_.of_a_core_for_ended);
}

const KnownRun* RunsFolder::Find(const std::string& name) const {
  const auto where = where_.find(name);
  if (where == where_.end()) return nullptr;
  const auto& runs = where->second.index->runs();
  const auto run = runs.find(where->second.name);
  return run == runs.end() ? nullptr : &run->second;
}

void RunsFolder::Reread(const std::string& name) {
  if (const auto where = where_.find(name); where != where_.end())
    where->second.index->Reread(where->second.name);
}

const LiveRun* RunsFolder::Live(const std::string& name) const {
  const auto followed = followed_.find(name);
  return followed == followed_.end() ? nullptr : &followed->second->run;
}

std::vector<std::pair<std::string, const LiveRun*>> RunsFolder::live() const {
  std::vector<std::pair<std::string, const LiveRun*>> all;
  for (const auto& [name, followed] : followed_) {
    if (followed->run.seen()) all.emplace_back(name, &followed->run);
  }
  return all;
}

}  // namespace fullbore::watch
