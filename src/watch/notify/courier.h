// Says alerts to whom the rules name. Each target has a lane of its own, in order, so that the end of an alert never comes
// before its beginning, and one that does not answer keeps nobody waiting: it is tried again with growing pauses, or
// when it said that it may be, for an hour. A few threads serve all lanes; where none can be made, what is to be said
// waits until one can.
//
// A target hears a bounded number of messages a minute: the last one sums up all that waits ("and 37 more"), and so do
// those after it. Alertmanager takes lists, and gets all that waits in one.
//
// One courier serves all watchers of a process. Any thread; nothing blocks, except Stop().
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
#include "watch/notify/delivery.h"

namespace fullbore::watch {

struct Parcel {
  Target target;                // not the log
  nlohmann::ordered_json json;  // "fullbore.alert/1"
  int64_t tag = 0;              // given back with the outcome; one alert has one tag
  bool refresh = false;         // says again what was said: no outcome, and dropped if it cannot be delivered
  const void* sender = nullptr;  // who takes the outcome
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
    // To one target.
    size_t most_a_minute = 20;
    int64_t minute_ns = 60'000'000'000;
  };
  Courier() : Courier(Patience{}) {}
  explicit Courier(Patience patience) : patience_(patience) {}
  ~Courier() { Stop(); }
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  // A newer message about the same alert takes the place of a refresh that waits; nothing else is ever dropped.
  void Send(Parcel parcel);
  std::vector<Outcome> Take(const void* sender = nullptr);  // since the last call
  bool idle(const void* sender = nullptr) const;            // nothing is under way, and nothing to take
  // What keeps messages from being delivered at all, said once; empty if nothing does.
  std::string TakeProblem();
  // Begins nothing any more, and waits for the attempts in progress, two seconds at most: one that delivers still has
  // its outcome. Then no program that was run for an alert goes on. Call Send no more.
  void Stop();

 private:
  struct Lane {
    Target target;
    std::deque<Parcel> queue;
    size_t message = 0;  // so many parcels at the front are the message that is being delivered; 0: none is
    bool busy = false;   // with an attempt
    size_t alone = 0;    // so many are delivered one by one, after a list of them was refused
    int tries = 0;       // of the message
    int64_t first_try_ns = 0, next_try_ns = 0, pause_ns = 0;
    std::deque<int64_t> begun_ns;  // the messages of the last minute
  };

  Lane& LaneOf(const Target& target);
  void Work();
  void MakeThread();
  Lane* NextLane(int64_t now_ns, int64_t* wake_ns);
  void Begin(Lane& lane, int64_t now_ns);
  int64_t DueNs(Lane& lane, int64_t now_ns) const;
  size_t CountOf(const Lane& lane) const;
  void Conclude(Lane& lane, const Attempt& attempt);
  bool TriesAgain(const Lane& lane, const Attempt& attempt, int64_t now_ns) const;

  const Patience patience_;
  CommandMark mark_;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_:
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::thread> threads_;
  std::vector<std::pair<const void*, Outcome>> outcomes_;
  size_t waiting_threads_ = 0;
  std::string problem_;
  bool said_problem_ = false;
};

}  // namespace fullbore::watch
