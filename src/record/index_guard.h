// SQLite maps the index of a write-ahead log, `x-shm`, and writes to it through the map. Where such a page cannot be
// written (a full disk that copies on write, a network file system's error, a file that was truncated), the kernel ends
// the process with SIGBUS. With this guard the process keeps a copy of the index in memory of its own instead, and goes
// on: the connection is then to be closed, because what it does is not seen by others, and opened again, which makes the
// index anew from the log.
//
// The handler is the process's; a SIGBUS elsewhere still ends it, or is left to an earlier handler.
#pragma once

#include <signal.h>

#include <cstdint>

namespace fullbore::record {

// While it lives, an index may be written to by this thread: a fault ends a process that blocks SIGBUS, as `run` does
// to pass it on. One that somebody sends meanwhile waits until the guard's end. Two system calls.
class IndexGuard {
 public:
  explicit IndexGuard(bool wanted);
  ~IndexGuard();
  IndexGuard(const IndexGuard&) = delete;
  IndexGuard& operator=(const IndexGuard&) = delete;

 private:
  const bool wanted_;
  sigset_t before_;
};

// How often an index was lost in this way.
uint64_t LostIndexes();

}  // namespace fullbore::record
