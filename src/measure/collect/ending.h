// Ends a trial's command together with everything that it started: its own session, and whatever left that (torchrun's
// workers have sessions of their own), found by FULLBORE_RUN in its environment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace fullbore::collect {

class Ending {
 public:
  // `leader` leads its session; `mark` is the value of FULLBORE_RUN.
  Ending(pid_t leader, std::string mark) : leader_(leader), mark_(std::move(mark)) {}

  void Begin() { begun_ = true; }
  bool begun() const { return begun_; }
  // Sends what is due: SIGTERM first, SIGKILL some seconds later.
  void Tick(int64_t now_ns);
  void Pause(int signal) const;  // SIGSTOP or SIGCONT

  // After the leader has ended: lets the rest a moment for ending by itself, then kills it. Returns when nothing is left,
  // or after some seconds with what cannot be killed (a process in an uninterruptible wait).
  void EndRest() const;

 private:
  int Send(int signal) const;  // how many processes got it

  pid_t leader_;
  std::string mark_;
  bool begun_ = false;
  int64_t term_ns_ = 0;  // when SIGTERM was sent; 0 before
  bool killed_ = false;
};

}  // namespace fullbore::collect
