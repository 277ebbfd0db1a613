// One piece of work at a time in a thread of its own, so that who asked for it goes on meanwhile. Work that takes longer
// than its limit is given up: it ends by itself where it asks TimeLimit::Check(), and if it never does, its thread is left
// alone, and nothing else begins here until it has ended. So there is one thread at most.
//
// Owned and called by one thread. What the work uses must belong to it: it may outlive us.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace fullbore {

class SideThread {
 public:
  explicit SideThread(int64_t limit_ns) : limit_ns_(limit_ns) {}
  ~SideThread();  // ends what is under way, and waits a second for it at most
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  enum class State {
    kFree,     // nothing is under way
    kBusy,     // work is
    kDone,     // it has ended
    kGivenUp,  // its time is over
    kStuck,    // and has been for so long that it will not end
  };

  // False where something else is under way, or no thread can be made.
  bool Begin(std::function<void()> work);
  // kDone and kGivenUp are told once. Waits so long for the end of the work.
  State Poll(int64_t wait_ns = 0);

  int64_t limit_ns() const { return limit_ns_; }

 private:
  struct Work;
  const int64_t limit_ns_;
  std::shared_ptr<Work> work_;
};

}  // namespace fullbore
