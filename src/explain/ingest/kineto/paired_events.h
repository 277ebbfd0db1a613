// Events that are written as two, one where they begin ("B") and one where they end ("E"): paired as the trace format
// says, the innermost that is open on the same thread first. Bounded: what is open of a thread that never ends
// anything is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "explain/ingest/kineto/event.h"

namespace fullbore::ingest::kineto {

class PairedEvents {
 public:
  void Begin(const RawEvent& event);
  // The complete event that ends, with what was written at its beginning; valid until the next call.
  std::optional<RawEvent> End(const RawEvent& event);

  // Those without the other one, without a readable time, or whose time runs backwards. Call once at the end.
  int64_t LeftOut() const;

 private:
  struct Open {
    std::string category, name, pid, tid, args, begin, duration;
    int64_t begin_ns = 0;
  };

  std::unordered_map<std::string, std::vector<Open>> open_;  // by thread
  Open closed_;
  size_t number_open_ = 0;
  int64_t left_out_ = 0;
  std::string key_;  // scratch
};

}  // namespace fullbore::ingest::kineto
