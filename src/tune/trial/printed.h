// What a trial's program prints: its throughput, and why it died, if it says so.
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
  // The first group of `pattern` (ECMAScript) is the value. An error for an invalid pattern, or one without a group. If
  // `before` is given and the file begins with it, that part is skipped: the program appends to the file.
  static Result<MetricReader> Make(const std::string& pattern, const std::string& before = "");

  // What was written since the last call. The path is where the file is now; empty if it does not exist yet.
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

// The last line with any content that a program printed before it ended, as a reason.
std::string LastWords(const std::string& path);

// The line of a program's output that says it got no memory, on the host, on a device or in /dev/shm; empty if none
// does.
std::string SaysOutOfMemory(std::string_view output);

// The end of a file, at most so many bytes of it; empty if it cannot be read.
std::string EndOf(const std::string& path, int64_t bytes = 64 << 10);

}  // namespace fullbore::tune
