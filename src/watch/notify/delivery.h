// One attempt to say an alert somewhere.
#pragma once

#include <atomic>
#include <map>
#include <string>

namespace fullbore::watch {

struct Attempt {
  enum class End { kDelivered, kFailed, kRefused };  // kRefused: to try again will not help
  End end = End::kFailed;
  std::string problem;  // without secrets
};

// Posts JSON. Takes at most 15 s, and ends soon after `stop` is set. Redirects are not followed.
Attempt Post(const std::string& url, const std::string& json, const std::atomic<bool>& stop);

// Runs a program with the JSON on its standard input and `variables` in its environment, in a process group of its own,
// without a shell; its output is dropped. The group is killed after 30 s, or when `stop` is set.
Attempt RunCommand(const std::string& program, const std::string& json,
                   const std::map<std::string, std::string>& variables, const std::atomic<bool>& stop);

}  // namespace fullbore::watch
