#include "tune/trial/printed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/guarded_file.h"
#include "base/text.h"
#include "base/utf8.h"

namespace fullbore::tune {

namespace {

// std::regex recurses with the length of its input.
constexpr size_t kMostOfALine = 2000;
constexpr int64_t kMostAtOnce = 4 << 20;
constexpr int64_t kMostToCompare = 4096;
constexpr size_t kMostOfAReason = 300;

// How the libraries of this field, the C library and the kernel put it.
constexpr std::array<std::string_view, 15> kOutOfMemory = {
    "out of memory",
    "OutOfMemoryError",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
    "RESOURCE_EXHAUSTED",
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "std::bad_alloc",
    "MemoryError",
    "Cannot allocate memory",
    "Unable to allocate",  // NumPy
    "out of shared memory",
    "is killed by signal: Bus error",  // a loader's worker, when /dev/shm is full
    "is killed by signal: Killed",     // a loader's worker
};

std::string ReadFrom(const std::string& path, int64_t offset, int64_t most) {
  const auto file = OpenRegularFile(path);
  if (!file) return "";
  std::string text(static_cast<size_t>(most), '\0');
  const ssize_t got = pread(file->get(), text.data(), text.size(), offset);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
  return text;
}

}  // namespace

Result<MetricReader> MetricReader::Make(const std::string& pattern, const std::string& before) try {
  MetricReader reader;
  struct stat status {};
  if (!before.empty() && stat(before.c_str(), &status) == 0) {
    reader.first_ = ReadFrom(before, 0, kMostToCompare);
    reader.was_there_ = status.st_size;
  }
  reader.pattern_.assign(pattern, std::regex::ECMAScript | std::regex::optimize);
  if (reader.pattern_.mark_count() == 0) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("--metric '{}' has no group", pattern),
                 "put the number in parentheses: --metric 'throughput: ([0-9.]+)'"};
  }
  return reader;
} catch (const std::regex_error& error) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--metric '{}' is not a regular expression: {}", pattern, error.what()),
               "for instance --metric 'throughput: ([0-9.]+)'"};
}

// A file that the program makes anew begins differently, or is shorter.
void MetricReader::SkipWhatWasThere(const std::string& path) {
  struct stat status {};
  if (was_there_ == 0 || stat(path.c_str(), &status) != 0) return;
  if (status.st_size >= was_there_ && ReadFrom(path, 0, kMostToCompare).starts_with(first_))
    offset_ = was_there_;
  was_there_ = 0;
}

void MetricReader::Read(const std::string& path) {
  SkipWhatWasThere(path);
  if (struct stat status{}; stat(path.c_str(), &status) == 0 && status.st_size < offset_)
    offset_ = 0;  // made anew
  while (true) {
    const std::string text = ReadFrom(path, offset_, kMostAtOnce);
    if (text.empty()) return;
    offset_ += static_cast<int64_t>(text.size());
    for (const char c : text) {
      if (c == '\n' || c == '\r') {
        ReadLine(partial_);
        partial_.clear();
      } else if (partial_.size() < kMostOfALine) {
        partial_ += c;
      }
    }
  }
}

void MetricReader::ReadLine(std::string_view line) {
  std::match_results<std::string_view::const_iterator> match;
  if (!std::regex_search(line.begin(), line.end(), match, pattern_)) return;
  std::string number = match[1].str();
  std::erase(number, ',');  // 1,840
  const auto value = ParseDouble(Trim(number));
  if (value && *value >= 0) values_.push_back(*value);
}

std::string EndOf(const std::string& path, int64_t bytes) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "";
  return ReadFrom(path, std::max<int64_t>(0, status.st_size - bytes), bytes);
}

std::string LastWords(const std::string& path) {
  const std::string text = EndOf(path);
  std::string_view last;
  for (const std::string_view line : Split(text, '\n')) {
    if (!Trim(line).empty()) last = Trim(line);
  }
  return std::string(Utf8Front(last, kMostOfAReason));
}

std::string SaysOutOfMemory(std::string_view output) {
  for (const std::string_view line : Split(output, '\n')) {
    const auto in_line = [&](std::string_view words) { return line.find(words) != std::string_view::npos; };
    if (std::any_of(kOutOfMemory.begin(), kOutOfMemory.end(), in_line))
      return std::string(Utf8Front(Trim(line), kMostOfAReason));
  }
  return "";
}

}  // namespace fullbore::tune
