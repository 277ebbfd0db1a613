// A directory of this process alone; removed with the object.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace fullbore {

class TemporaryDirectory {
 public:
  // In the system's directory for temporary files. The error names the directory and the system's reason.
  static Result<TemporaryDirectory> Make();
  static Result<TemporaryDirectory> MakeIn(const std::string& place);
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory();

  const std::string& path() const { return path_; }
  // Keeps the directory for people to find; returns its path.
  std::string Keep() { return std::exchange(path_, {}); }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: moved away
};

}  // namespace fullbore
