// A process of this program beside the command of `run`, which only reads the run file: who keeps watch (--rules), and
// who tells trackers (--log). And what it says.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "watch/helper.h"

namespace fullbore::cli {

class Companion {
 public:
  struct Task {
    std::vector<std::string> words;  // of the subcommand; the run file comes after them
    watch::HelperMemory memory = watch::HelperMemory::kBounded;
    std::string who;      // "who keeps watch over this run", for messages
    std::string lasting;  // what is said where it is not done when the run is
    std::string lost;     // and where it was ended before that
  };
  explicit Companion(Task task) : task_(std::move(task)) {}
  Companion(Companion&&) = default;

  // Starts it with the first call, and again if it was ended before the run; returns the lines that it has said since
  // the last one. Never blocks.
  std::vector<std::string> Tick(const std::string& run_file);
  // The run has ended: gives it until then to say so. What it cannot deliver by then it goes on with alone.
  std::vector<std::string> Finish(int64_t deadline_ns);

 private:
  void Start(const std::string& run_file, std::vector<std::string>& lines);
  bool WasEnded();
  std::vector<std::string> Lines();

  Task task_;
  pid_t pid_ = -1;
  int64_t next_start_ns_ = 0, pause_ns_ = 0;
  bool is_done_ = false;  // ended by itself
  UniqueFd output_;
  std::string partial_;
};

}  // namespace fullbore::cli
