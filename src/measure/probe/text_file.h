// A small file of /proc or /sys that is read over and over: kept open and read with pread, because opening is
// half the cost. And two cursors that split its text without allocating.
//
// Owned and called by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace fullbore::probe {

class TextFile {
 public:
  explicit TextFile(std::string path) : path_(std::move(path)) {}

  // The whole text, valid until the next call; nothing if the file cannot be read now. A file that vanished
  // is looked for again at the next call.
  std::optional<std::string_view> Read();

  const std::string& path() const { return path_; }
  int error_number() const { return error_number_; }  // of the last Read that gave nothing

 private:
  std::optional<std::string_view> Fail(int error_number);

  std::string path_;
  UniqueFd fd_;
  std::string buffer_;
  int error_number_ = 0;
};

class LineCursor {
 public:
  explicit LineCursor(std::string_view text) : rest_(text) {}
  bool Next(std::string_view& line);

 private:
  std::string_view rest_;
};

class WordCursor {
 public:
  explicit WordCursor(std::string_view text) : rest_(text) {}
  std::string_view Next();  // "" at the end
  std::optional<uint64_t> NextCount();
  void Skip(int words);

 private:
  std::string_view rest_;
};

// A file that holds one number, as most of sysfs does. Nothing for "max" and
// anything else that is not a number.
std::optional<uint64_t> ReadCount(const std::string& path);

// The number after `key` in lines like "oom_kill 3" or "MemTotal:  1024 kB" (where
// the key includes its colon).
std::optional<uint64_t> CountAfter(std::string_view text, std::string_view key);

}  // namespace fullbore::probe
