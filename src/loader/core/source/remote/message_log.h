// The messages of the store, without flooding: when a server is in trouble, thousands of requests notice it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fullbore/loader.h"

namespace fullbore::loader::remote {

// Thread-safe.
class MessageLog {
 public:
  explicit MessageLog(std::function<int64_t()> clock_ns = MonotonicNs) : clock_ns_(std::move(clock_ns)) {}

  // Logged once per `topic` in the lifetime of this log.
  void Once(const std::string& topic, Message::Severity severity, std::string text);

  // A request failed and is retried, or stalls. The first is logged at once, then one every 30 s, with the
  // number of those left out.
  void Trouble(const std::string& text);
  // A request that was in trouble succeeded. Logged only if its trouble was.
  void Recovered(const std::string& text);

  std::vector<Message> Take();

 private:
  void Add(Message::Severity severity, std::string text);

  const std::function<int64_t()> clock_ns_;
  std::mutex mutex_;  // protects what follows
  std::vector<Message> messages_;
  std::set<std::string> said_;
  int64_t last_trouble_ns_ = 0;
  uint64_t left_out_ = 0;
  bool ever_trouble_ = false;
  bool in_trouble_ = false;  // a trouble was logged, but not yet its recovery
};

}  // namespace fullbore::loader::remote
