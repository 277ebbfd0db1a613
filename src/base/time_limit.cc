#include "base/time_limit.h"

#include "base/clock.h"

namespace fullbore {

namespace {

thread_local const TimeLimit* current = nullptr;

}  // namespace

TimeLimit::TimeLimit(int64_t ns, const std::atomic<bool>* stop)
    : until_ns_(MonotonicNs() + ns), stop_(stop), outer_(current) {
  current = this;
}

TimeLimit::~TimeLimit() { current = outer_; }

void TimeLimit::Check() {
  if (current == nullptr) return;
  if ((current->stop_ != nullptr && *current->stop_) || MonotonicNs() > current->until_ns_) throw OutOfTime();
}

}  // namespace fullbore
