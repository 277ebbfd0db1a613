// The runs of one directory, newest first, without reading them again: what a list shows of each is kept in memory and
// in a file beside the runs (`.index`, JSON lines, private to its user), and brought up to date by comparing sizes and
// times of change. The index may be deleted at any moment; where it cannot be written, it is kept in memory only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/run_reader.h"
#include "watch/announcer.h"

namespace fullbore::diagnose {
struct Diagnosis;
}

namespace fullbore::watch {

// Nothing was written for longer than this: whoever recorded is gone. A recorder writes once a second.
inline constexpr int64_t kSilentNs = 30'000'000'000;
// Of one run file, once; false if it is not there. Who looks again and again asks whether its end moves.
bool IsSilent(const std::string& run_file, int64_t wall_ns);

enum class RunState : uint8_t { kRunning, kCutOff, kEnded };

// What a list shows of a diagnosis.
struct Judgement {
  std::string finding, cause, severity;  // of the first finding; empty where there is none
  std::string verdict;                   // its title, one sentence; empty where there is none
  std::string change;                    // in code; may be empty
  double speedup = 1;                    // expected of that change
  int64_t steps = 0;  // of the steady state; 0: nothing trained, and the figures below are 0
  double steps_per_s = 0, mean_step_ns = 0;
  std::optional<double> samples_per_s;
  std::map<std::string, double> shares;
  std::vector<double> sparkline;  // steps per second over the run, at most kSparks values

  static constexpr size_t kSparks = 40;
  // Of the judged stage.
  static Judgement Of(const diagnose::Diagnosis& diagnosis, const record::Recording& recording);
};

// Distinguishes one state of a run file, its log included, from a later one.
struct FileStamp {
  uint64_t inode = 0;
  int64_t bytes = 0, changed_ns = 0;          // of the file
  int64_t log_bytes = 0, log_changed_ns = 0;  // of the log beside it; 0 without one

  bool operator==(const FileStamp&) const = default;
};

struct KnownRun {
  std::string name;  // the file's, without its suffix; unique among the runs of a folder
  record::RunSummary summary;
  RunState state = RunState::kEnded;
  std::optional<Judgement> judgement;  // absent until somebody has judged it
  FileStamp stamp;
};

inline constexpr char kRunIndexFile[] = ".index";

class RunIndex {
 public:
  explicit RunIndex(std::string directory);  // reads the index file, if there is one

  // Lists the directory, and reads the runs that are new or have changed; true if anything did. 10,000 known runs take
  // about 30 ms. `wall_ns`: now, by the clock of the file system.
  bool Update(int64_t wall_ns);

  const std::string& directory() const { return directory_; }
  const std::map<std::string, KnownRun>& runs() const { return runs_; }  // by name
  void Judge(const std::string& name, Judgement judgement);
  void PutSummary(const std::string& name,
                  record::RunSummary summary);  // of a live run, from whoever follows it

  // Tags and note, after somebody has edited them; the judgement stays, for neither is part of what is judged.
  void Reread(const std::string& name);

  // Writes the index file if an ended run was added, changed, judged or removed since. Failing is no harm.
  void Save();

 private:
  void Load();
  bool Look(const std::string& name, const FileStamp& stamp, int64_t wall_ns);

  std::string directory_;
  std::map<std::string, KnownRun> runs_;
  std::map<std::string, FileStamp> unreadable_;  // and how they were when that was found out
  bool unsaved_ = false;
};

}  // namespace fullbore::watch
