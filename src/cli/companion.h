// `run --rules`: `fullbore alerts watch` beside the command, in a process of its own, and what it says.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"

namespace fullbore::cli {

class RunWatch {
 public:
  // `rules`: as --rules has it; empty: nobody watches.
  explicit RunWatch(std::string rules) : rules_(std::move(rules)) {}
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  // Starts it with the first call, and again if it has ended before the run; returns the lines that it has said since
  // the last one. Never blocks.
  std::vector<std::string> Tick(const std::string& run_file);
  // The run has ended: gives it a few seconds to say so. What it cannot deliver by then it goes on with alone.
  std::vector<std::string> Finish();

 private:
  void Start(const std::string& run_file, std::vector<std::string>& lines);
  std::vector<std::string> Lines();

  std::string rules_;
  pid_t pid_ = -1;
  int64_t next_start_ns_ = 0, pause_ns_ = 0;
  UniqueFd output_;
  std::string partial_;
};

}  // namespace fullbore::cli
