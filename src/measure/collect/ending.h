// Asks a trial's command and everything that it started to end, and then ends them: all that descends from its keeper,
// and what carries FULLBORE_RUN in its environment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>

namespace fullbore::collect {

class Ending {
 public:
  // `ancestor` is the keeper, `mark` the value of FULLBORE_RUN.
  Ending(pid_t ancestor, std::string mark) : ancestor_(ancestor), mark_(std::move(mark)) {}

  void Begin() { begun_ = true; }
  bool begun() const { return begun_; }
  // Sends what is due: SIGTERM first, SIGKILL some seconds later.
  void Tick(int64_t now_ns);
  // SIGSTOP or SIGCONT, also to what is started meanwhile. When the first of them was sent.
  int64_t Pause(int signal) const;
  // What the mark still finds, after the keeper is gone: there is nothing, unless the keeper was killed.
  void KillRest() const;

 private:
  std::set<int64_t> Send(int signal) const;  // to these

  pid_t ancestor_;
  std::string mark_;
  bool begun_ = false;
  int64_t term_ns_ = 0;  // when SIGTERM was sent; 0 before
  bool killed_ = false;
};

}  // namespace fullbore::collect
