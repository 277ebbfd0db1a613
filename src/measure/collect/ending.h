// Asks a command and everything that it started to end, and then ends them: all that descends from one process, and
// what carries FULLBORE_RUN in its environment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <span>
#include <string>

namespace fullbore::collect {

class Ending {
 public:
  // Of a trial: all are asked with SIGTERM. `keeper` answers for what the command starts, and stays;
  // `mark` is the value of FULLBORE_RUN.
  static Ending OfTrial(pid_t keeper, std::string mark);
  // Of a command in our process group: asked as Ctrl-C would ask, so that it can end its own children in order (torchrun
  // does, whose ranks are in sessions of their own); then all of them with SIGTERM.
  static Ending AsCtrlC(pid_t command, std::string mark);

  void Begin() { begun_ = true; }
  bool begun() const { return begun_; }
  // Sends what is due: SIGKILL is the last, some seconds after SIGTERM.
  void Tick(int64_t now_ns);
  // SIGSTOP or SIGCONT, also to what is started meanwhile. When the first of them was sent.
  int64_t Pause(int signal) const;
  // What outlives the command gets the rest of the signals, each when it is due. Returns when nothing is left, or what is
  // left was killed.
  void EndRest();
  // What the mark still finds, after the keeper is gone: there is nothing, unless the keeper was killed.
  void KillRest() const;

 private:
  struct Demand {
    int signal;
    bool only_our_group;
    int64_t patience_ns;  // before the next
  };
  static const Demand kOfTrial[];
  static const Demand kAsCtrlC[];

  Ending(pid_t ancestor, bool ancestor_stays, std::string mark, std::span<const Demand> demands)
      : ancestor_(ancestor), ancestor_stays_(ancestor_stays), mark_(std::move(mark)), demands_(demands) {}
  std::set<int64_t> Send(int signal, bool only_our_group = false) const;  // to these

  pid_t ancestor_;
  bool ancestor_stays_;
  std::string mark_;
  std::span<const Demand> demands_;  // those still to be made
  bool begun_ = false;
  int64_t due_ns_ = 0;  // the next of them
};

}  // namespace fullbore::collect
