// What a trial's program prints: its throughput, where it says it, and how it died, where it did.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fullbore::tune {

// Reads the values of a growing file; each line, ended by a line feed or, as progress bars do, by a carriage return.
class MetricReader {
 public:
  // The first group of `pattern` (ECMAScript) is the value. An error for a pattern that is none, or has no group. What
  // stands in `before`, if it is given, is not read in a file that begins with the same: the program appends to it.
  static Result<MetricReader> Make(const std::string& pattern, const std::string& before = "");

  // What was written since the last call. The path is where the file is now; none is there yet where it is empty.
  void Read(const std::string& path);
  const std::vector<double>& values() const { return values_; }

 private:
  void ReadLine(std::string_view line);
  void SkipWhatWasThere(const std::string& path);

  std::regex pattern_;
  std::string first_;      // of what was there before
  int64_t was_there_ = 0;  // bytes
  int64_t offset_ = 0;
  std::string partial_;
  std::vector<double> values_;
};

// The last thing that a program printed before it ended, as a reason: its last line that says anything.
std::string LastWords(const std::string& path);

// The line of a program's output that says it got no memory, on the host, on a device or in /dev/shm; empty if none does.
std::string SaysOutOfMemory(std::string_view output);

// The end of a file, at most so many bytes of it; empty if it cannot be read.
std::string EndOf(const std::string& path, int64_t bytes = 64 << 10);

}  // namespace fullbore::tune
