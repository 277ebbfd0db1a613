// A directory of one trial's: what the trial writes lies in it, and it is removed with everything in it, at the latest by
// the next start of a trial at the same place. While anybody of this process or its keeper lives, it is locked.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace fullbore::isolate {

class Scratch {
 public:
  // In the directory `place`. Removes what earlier trials left there first.
  static Result<Scratch> Make(const std::string& place);
  Scratch(Scratch&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        lock_(std::move(other.lock_)),
        most_bytes_(other.most_bytes_) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();

  const std::string& path() const { return path_; }
  int lock() const { return lock_.get(); }  // a descriptor that keeps it locked wherever it is inherited

  // What lies in it on disk. Looks at every file: for some times a minute.
  int64_t UsedBytes() const;
  // The most that a trial may write: half of what was free.
  int64_t most_bytes() const { return most_bytes_; }

 private:
  Scratch(std::string path, UniqueFd lock, int64_t most_bytes)
      : path_(std::move(path)), lock_(std::move(lock)), most_bytes_(most_bytes) {}

  std::string path_;  // empty: moved away
  UniqueFd lock_;
  int64_t most_bytes_;
};

// Those of this user in `place` that nobody uses any more; returns how many. Called by Make.
int RemoveLeftovers(const std::string& place);

// With everything in it, also where a directory lost its permissions.
void RemoveTree(const std::string& path);

}  // namespace fullbore::isolate
