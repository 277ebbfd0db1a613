// One attempt to say an alert somewhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "watch/notify/command_mark.h"

namespace fullbore::watch {

// What has begun to be said when `stop` is set gets so long to end: or the receiver has heard it, and nobody knows.
inline constexpr int64_t kLeaveNs = 2'000'000'000;

struct Attempt {
  enum class End { kDelivered, kFailed, kRefused };  // kRefused: to try again will not help
  End end = End::kFailed;
  std::string problem;   // without secrets
  std::string answer{};  // what a server said, as far as it is kept
  int64_t wait_ns = 0;   // as a server asks that says "too many": not to be tried again before
};

// Posts JSON. Takes at most 15 s. Redirects are not followed. `headers`: further lines, "Name: value".
Attempt Post(const std::string& url, const std::string& json, const std::atomic<bool>& stop,
             const std::vector<std::string>& headers = {});

// Runs a program with the JSON on its standard input and `variables` in its environment, in a process group of its own,
// without a shell; its output is dropped. After 30 s the group is killed, and what left it, by the mark.
Attempt RunCommand(const std::string& program, const std::string& json,
                   const std::map<std::string, std::string>& variables, CommandMark& mark,
                   const std::atomic<bool>& stop);

}  // namespace fullbore::watch
