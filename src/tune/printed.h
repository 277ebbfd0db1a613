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
  // The first group of `pattern` (ECMAScript) is the value. An error for a pattern that is none, or has no group.
  static Result<MetricReader> Make(const std::string& path, const std::string& pattern);

  void Read();  // what was written since the last call
  const std::vector<double>& values() const { return values_; }

 private:
  void ReadLine(std::string_view line);

  std::string path_;
  std::regex pattern_;
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
