// What kinds of events a trace holds: for the sentence about one that holds no training, and to tell recordings of
// devices and recorders whose events mean something else than PyTorch's.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "explain/ingest/kineto/event.h"

namespace fullbore::ingest::kineto {

class Census {
 public:
  enum Kind : uint8_t { kOperators, kRanges, kFunctions, kCalls, kCounters, kKinds };

  void Count(Kind kind) { ++counts_[kind]; }
  void CountUnread(std::string_view category);  // of an event with a duration
  void TakeMetadata(const RawEvent& event);     // names of processes

  // The error for a trace without any device operation that was read: its device's are recorded in a way that is not.
  std::optional<Error> Foreign(const std::string& name) const;

  // "1,203 operators of the CPU, 40 readings of counters"; empty if there is nothing but names.
  std::string Held() const;

 private:
  std::array<int64_t, kKinds> counts_{};
  std::map<std::string, int64_t, std::less<>> unread_;  // by category
  int device_ = -1;                                     // into the table of foreign devices
};

}  // namespace fullbore::ingest::kineto
