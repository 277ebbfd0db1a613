// Brings one run to one tracker: what the run file has and the tracker does not yet. Live or ended, again and again or
// once: the same code. What cannot be sent now stays where it is, in the run file, so nothing is kept in memory and
// nothing is lost while a tracker is away. One thread; a call takes as long as the tracker takes to answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "record/recording.h"
#include "watch/notify/delivery.h"
#include "watch/track/tracker.h"

namespace fullbore::watch {

class Feed {
 public:
  enum class Origin { kFile, kLive };

  explicit Feed(std::unique_ptr<Tracker> tracker, Origin origin = Origin::kFile)
      : tracker_(std::move(tracker)), origin_(origin) {}

  // Sends what of the recording was not sent yet; `over`: nothing more will come, and it is told the end. kFailed: the
  // next call goes on where this one came to a stop. kRefused: no call will help.
  Attempt Bring(const record::Recording& recording, bool over);

  // The newest moment that the tracker has, CLOCK_MONOTONIC; 0 before the first.
  int64_t sent_until_ns() const { return sent_until_ns_; }
  int64_t sent() const { return sent_; }                 // values
  const std::string& partly() const { return partly_; }  // why some values were refused
  bool done() const { return done_; }
  std::string name() const { return tracker_->name(); }

 private:
  Attempt SendSamples(const record::Recording& recording, bool over);
  Attempt Conclude(const record::Recording& recording);

  TrackedRun RunOf(const record::Recording& recording) const;

  std::unique_ptr<Tracker> tracker_;
  Origin origin_;
  bool begun_ = false, done_ = false;
  int64_t sent_until_ns_ = 0, sent_ = 0;
  std::string partly_;
};

}  // namespace fullbore::watch
