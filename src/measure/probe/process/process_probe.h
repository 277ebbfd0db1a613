// The processes of the command: CPU, waits for a core, memory, threads, context switches and I/O, summed by role
// ("trainer", "loader", "other") and, if the rank is known, by role and rank. One series per role rather than per process
// keeps the run file small; the processes themselves are listed once, by Processes().
//
// Cost: about 10 us per process and second. /proc/PID/stat stays open; costlier files (status, io) are read
// from at most 24 processes per round in turn. Two are read within a budget each, those processes first that
// have gone longest without: the threads' waits for a core, of processes that took CPU time (0.2 % of a core:
// some 700 threads a second), and shared-aware memory (PSS), whose cost grows with the memory (0.1 %; 0.5 % in the first
// minute, in which loader workers come first: they are read every two seconds, and every ten once they are older).
// Training
// processes that keep more than one core busy, or whose threads wait for cores, are also sampled (spin_sampler.h): do
// they compute, or only spin?
//
// Not seen: the CPU time of a process after its last reading, and processes that live less than a second.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "measure/probe/counter.h"
#include "measure/probe/probe.h"
#include "measure/probe/process/process_stat.h"
#include "measure/probe/process/process_tree.h"
#include "measure/probe/process/spin_sampler.h"
#include "measure/probe/process/thread_delay.h"

namespace fullbore::probe {

class ProcessProbe : public Probe {
 public:
  explicit ProcessProbe(const Machine& machine);
  ~ProcessProbe() override;

  std::string_view name() const override { return "process"; }
  Rate rate() const override { return Rate::kSlow; }
  void Sample(int64_t t_ns, Sink& sink) override;

  // What a process said about itself. Until then a process of the tree is "other". May be called before the
  // process was seen. `rank` is -1 if there is none.
  void SetRole(int64_t pid, const std::string& role, int rank);

  // Whether a process of the command with this pid was running at the last round.
  bool IsOurs(int64_t pid) const { return running_.contains(pid); }

  // Some process of this role that was running at the last round, 0 if there was none.
  int64_t OneWithRole(std::string_view role) const;

  // The first 1000 processes seen; `end_ns` is the round in which the process was found gone.
  std::vector<record::Process> Processes() const;

 private:
  struct Details {  // from /proc/PID/status and io
    Counter switches, read, written, read_calls;
    std::optional<double> switches_per_s, read_per_s, written_per_s, read_calls_per_s;
    std::optional<uint64_t> most_bytes;  // that it ever held, when this was read
    std::optional<double> cpus_allowed;  // to its main thread
  };
  struct Running {
    size_t listed = 0;  // in processes_, kNotListed past its end
    std::string role = "other";
    int rank = -1;
    UniqueFd stat;
    std::string name;
    bool command_known = false;
    int64_t adopted_ns = 0;
    uint64_t start_ticks = 0;
    uint64_t last_cpu_ticks = 0;
    double cpu_cores = 0;
    bool cpu_known = false;
    uint64_t resident_bytes = 0;
    int64_t threads = 0;
    Details details;
    ThreadDelay delay;
    std::optional<double> delay_cores;
    uint64_t delay_cpu_ticks = 0;  // last_cpu_ticks when its threads were last read
    int64_t delay_ns = 0;          // when that was; 0 if never
    SpinSamples spin;              // since the previous round
    std::optional<uint64_t> pss_bytes;
    int64_t pss_ns = 0;
  };
  struct Group;  // the sums of a role, or of a role and a rank
  using GroupKey = std::pair<std::string, int>;

  void Adopt(int64_t pid, int64_t t_ns);
  void ReadStats(int64_t t_ns);
  std::optional<ProcessStat> ReadStat(int64_t pid, const Running& process);
  std::string CommandOf(int64_t pid, const std::string& name) const;
  void ReadDetails(int64_t t_ns);
  void ReadDetailsOf(int64_t pid, Details& details, int64_t t_ns);
  void ReadDelays(int64_t t_ns);
  void ReadSpins(Sink& sink);
  void ReadPss(int64_t t_ns);
  void End(int64_t pid, int64_t t_ns);
  Group& GroupOf(const std::string& role, int rank);
  void EmitSums(int64_t t_ns, Sink& sink);
  std::string DirectoryOf(int64_t pid) const { return proc_directory_ + "/" + std::to_string(pid); }

  const std::string proc_directory_;
  const bool keep_command_lines_;
  const bool may_sample_;  // the processes are those of this machine
  ProcessTree tree_;
  std::map<int64_t, Running> running_;
  std::vector<record::Process> processes_;
  std::unordered_map<int64_t, std::pair<std::string, int>> announced_;
  std::map<GroupKey, std::unique_ptr<Group>> groups_;
  int64_t last_ns_ = 0;
  int64_t next_detailed_pid_ = 0;
  int64_t delay_budget_ns_ = 0;
  int64_t pss_budget_ns_ = 0;
  int64_t first_ns_ = 0;  // of the first round
  size_t unlisted_ = 0;
  bool said_unlisted_ = false;
  SpinSampler spins_;
  bool said_refused_ = false;
  char buffer_[1024];
};

}  // namespace fullbore::probe
