// Locks between the processes that share a cache directory: byte ranges of one file, so that each chunk has a
// lock of its own and no lock files are left behind. The kernel releases them when a process dies, however it
// dies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace fullbore::loader::remote {

class CacheLock {
 public:
  // Locks byte `place` of the file at `path`, without waiting. Empty: it is locked already, by another
  // process or by another lock of this one.
  static Result<std::optional<CacheLock>> Try(const std::string& path, uint64_t place);

  CacheLock(CacheLock&&) noexcept = default;
  CacheLock& operator=(CacheLock&&) = delete;
  ~CacheLock();

 private:
  CacheLock(UniqueFd fd, uint64_t place) : fd_(std::move(fd)), place_(place) {}
  UniqueFd fd_;
  uint64_t place_;
};

}  // namespace fullbore::loader::remote
