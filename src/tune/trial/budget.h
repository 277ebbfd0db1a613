// The time that all trials of one command may take, and Ctrl-C between two of them; within one, collect::Run sees it.
#pragma once

#include <signal.h>

#include <cstdint>
#include <map>
#include <string>

#include "tune/trial/measure.h"

namespace fullbore::tune {

class Budget {
 public:
  // Begins now. While it exists, signals that would end this process are only noted; at most one at a time.
  explicit Budget(double seconds);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  double all_s() const { return seconds_; }
  double left_s() const;
  bool IsOver() const { return left_s() < 0; }
  std::string text() const;  // "the budget of 10 min"

  // A trial that begins now ends with the budget, and at once if the user asks for that.
  void Limit(MeasureOptions& options) const;

  void NoteInterrupt(int signal) { interrupted_by_ = signal; }  // seen by a trial
  bool interrupted() const { return interrupted_by() != 0; }
  int interrupted_by() const;  // a signal, or 0

 private:
  double seconds_;
  int64_t end_ns_;
  int interrupted_by_ = 0;
  std::map<int, struct sigaction> before_;  // the earlier actions of these signals
};

}  // namespace fullbore::tune
