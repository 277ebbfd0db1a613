// An owned file descriptor, and whole-file reads of small files.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace fullbore {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// All open descriptors from `first` on are closed in what this process executes. In a forked child, too.
void CloseOnExec(int first);

// The whole file as text. /proc files report size 0, so this reads to the end, whatever stat says.
Result<std::string> ReadFile(const std::string& path);
Result<std::string> ReadToEnd(int fd, const std::string& path);  // `path` is for the error message

}  // namespace fullbore
