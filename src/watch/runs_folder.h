// The runs of one or several directories, and those of them that are being recorded, followed: the one source of
// `top`, `serve` and the alerts. Reads run files and nothing else.
//
// Owned and called by one thread. Tick() is meant to be called about once a second, and may be called at once when fd()
// is readable. How often a run is looked at follows from what a look at it costs, so that the budget holds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/side_thread.h"
#include "watch/live_run.h"
#include "watch/run_index.h"

namespace fullbore::watch {

struct Budget {
  // Of one core, on average and for all live runs together. A look at a run is followed by a pause in proportion to
  // what the look took, and by at least so long a one:
  double of_a_core = 0.015;
  int64_t window_pause_ns = 1'000'000'000;
  int64_t all_pause_ns = 15'000'000'000;
  // The same for judging, one after the other, the ended runs that nobody has judged; 0: they are not judged.
  double of_a_core_for_ended = 0.25;
  // A run is judged in a thread of its own, and given up after so long. Tick() waits so long for it, at most, before it
  // goes on without: whoever has to answer others meanwhile sets little.
  int64_t judge_limit_ns = 20'000'000'000;
  int64_t waits_ns = 30'000'000'000;
};

// What is known of the ended runs is kept in the index file of each directory, for the next one who looks.
enum class KeepsIndex : bool { kNo, kYes };

class RunsFolder {
 public:
  // A directory that does not exist is empty, and noticed when it is there.
  RunsFolder(const std::vector<std::string>& directories, Budget budget, KeepsIndex keeps = KeepsIndex::kYes);
  ~RunsFolder();
  RunsFolder(const RunsFolder&) = delete;
  RunsFolder& operator=(const RunsFolder&) = delete;

  // Becomes readable when a run file appeared, ended or was removed. -1 where the system has no inotify to spare; the
  // directories are listed every ten seconds in any case.
  int fd() const { return notify_.get(); }

  // Lists what has changed, and looks at those live runs that are due. Both times are now: CLOCK_MONOTONIC, and the
  // wall clock.
  void Tick(int64_t now_ns, int64_t wall_ns);

  // Newest first. Valid until the next Tick(). A name is that of the file; where several directories have it, the
  // second is "name~2".
  const std::vector<std::pair<std::string, const KnownRun*>>& runs() const { return runs_; }
  const KnownRun* Find(const std::string& name) const;  // null if there is none
  // After somebody has edited it. What runs() returned is no longer valid.
  void Reread(const std::string& name);
  // The live run of that name; null where that run is not being recorded. It stays the same object while the run lasts.
  const LiveRun* Live(const std::string& name) const;
  // Those that were looked at, by name.
  std::vector<std::pair<std::string, const LiveRun*>> live() const;

  // Called with the name and the run after each look at its window, and once more, with ended() or cut off, when it is
  // over; the run is gone afterwards. Also once, as over, for a run that ended unseen in the last day and of which
  // is_owed says that something is still to be said: that an alert is over, or what was not delivered.
  std::function<void(const std::string& name, const LiveRun& run, bool over)> on_look;
  std::function<bool(const std::string& run_file)> is_owed;

 private:
  struct Followed {
    explicit Followed(const std::string& path) : run(path) {}
    LiveRun run;
    int64_t window_due_ns = 0, all_due_ns = 0;
  };
  struct Where {
    RunIndex* index;
    std::string name;  // in it
  };

  bool Notice();
  void List(int64_t wall_ns);
  void FollowLive();
  void CatchUp(int64_t wall_ns);
  void Look(const std::string& name, Followed& followed, int64_t now_ns);
  void JudgeOneEnded(int64_t now_ns);
  void TakeJudgement(int64_t now_ns);
  void Save();
  int64_t PauseNs(int64_t cost_ns, int64_t least_ns) const;

  Budget budget_;
  KeepsIndex keeps_;
  std::vector<std::unique_ptr<RunIndex>> indexes_;
  std::vector<std::pair<std::string, const KnownRun*>> runs_;
  std::map<std::string, Where> where_;
  std::map<std::string, std::unique_ptr<Followed>> followed_;
  struct Judging {
    std::string name;
    Judgement judgement;  // written by the thread until it has ended
    int64_t cpu_ns = 0;   // that it took
  };
  std::shared_ptr<Judging> judging_;
  SideThread side_;
  std::set<std::string> met_;  // the runs of earlier lists
  UniqueFd notify_;
  std::vector<int> watches_;  // of the directories; -1: it is not there yet
  int64_t next_list_ns_ = 0, next_judge_ns_ = 0, next_save_ns_ = 0;
};

}  // namespace fullbore::watch
