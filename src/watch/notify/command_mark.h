// What the programs that are run for alerts start in turn, found again: each gets a variable in its environment that
// nobody else has, and hands it down to its children, into whatever group or session those go. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace fullbore::watch {

class CommandMark {
 public:
  static constexpr char kVariable[] = "FULLBORE_ALERT_COMMAND";

  CommandMark();

  std::string Next();  // the value for one more program
  // Kills what carries this value: a program that was given it, and its children. One that has cleared its environment
  // is not found.
  void End(const std::string& value) const;
  // The same for all values, for those that do not end by themselves in `patience_ns`.
  void EndAll(int64_t patience_ns) const;

 private:
  std::string prefix_;
  std::atomic<int> count_ = 0;
};

}  // namespace fullbore::watch
