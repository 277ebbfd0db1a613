// Says alerts to whom the rules name, each target by a thread of its own, so that one that does not answer keeps nobody
// waiting. What cannot be delivered is tried again with growing pauses for an hour, in order, so that the end of an
// alert never comes before its beginning.
//
// Send and Take may be called by one thread, and never block.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "watch/alert/rule.h"

namespace fullbore::watch {

struct Parcel {
  Target target;                // not the log
  nlohmann::ordered_json json;  // "fullbore.alert/1"
  int64_t tag = 0;              // given back with the outcome
  bool refresh = false;         // says again what was said: no outcome, and dropped if it cannot be delivered
};

struct Outcome {
  int64_t tag = 0;
  Target target;
  bool resolved = false;  // of the end of the alert
  bool delivered = false;
  std::string problem;
};

class Courier {
 public:
  struct Patience {
    int64_t first_pause_ns = 1'000'000'000, longest_pause_ns = 60'000'000'000,
            gives_up_ns = 3'600'000'000'000;
  };
  Courier() : Courier(Patience{}) {}
  explicit Courier(Patience patience) : patience_(patience) {}
  ~Courier() { Stop(); }
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  void Send(Parcel parcel);
  std::vector<Outcome> Take();  // since the last call
  bool idle() const;            // nothing is under way, and nothing to take
  // Begins nothing any more, and waits for the attempts in progress, two seconds at most: one that delivers still has
  // its outcome. Call Send no more.
  void Stop();

 private:
  struct Lane {
    Target target;
    std::deque<Parcel> queue;
    std::thread thread;
  };

  void Serve(Lane& lane);
  void Deliver(Lane& lane, const Parcel& parcel);

  const Patience patience_;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // guarded by mutex_, as are the queues
  std::vector<Outcome> outcomes_;
  int under_way_ = 0;  // queued or being delivered
};

// What Alertmanager's v2 API takes: a list of one alert. A firing one counts as over five minutes after it was last
// said, in case nobody is left to say so.
nlohmann::ordered_json ForAlertmanager(const nlohmann::ordered_json& alert, int64_t wall_ns);

}  // namespace fullbore::watch
