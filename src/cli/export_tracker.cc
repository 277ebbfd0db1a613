#include "cli/export_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/print.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "cli/traces.h"
#include "record/run_reader.h"
#include "watch/pulse.h"
#include "watch/track/feed.h"

namespace fullbore::cli {

namespace {

using End = watch::Attempt::End;

constexpr int64_t kOverlapNs = 30 * kNsPerSecond;  // what may still be written of what has been recorded
constexpr int64_t kBetweenLooksNs = 2 * kNsPerSecond;
constexpr int64_t kTimesALook = 50;  // a pause is so many times what a look took: 2 % of a core
constexpr int64_t kLongestPauseNs = 60 * kNsPerSecond;
constexpr int64_t kDeliversForNs = 900 * kNsPerSecond;  // after the end of the run
constexpr int64_t kAll = std::numeric_limits<int64_t>::max() / 4;

void SayLine(const std::string& line) {
  Print(stdout, "{}\n", line);
  (void)std::fflush(stdout);
}

bool HasEnded(const record::Recording& recording) {
  return !recording.stages.empty() && recording.stages.back().state == record::StageState::kEnded;
}

// Follows one run for one tracker until it has all.
class Follower {
 public:
  Follower(std::string path, watch::Feed& feed) : path_(std::move(path)), feed_(feed) {}

  // The exit status, once there is nothing left to do.
  std::optional<int> Look();
  int64_t pause_ns() const { return pause_ns_; }

 private:
  Result<record::Recording> Read();
  std::optional<int> Judge(const watch::Attempt& attempt);
  void Say(const watch::Attempt& attempt);

  std::string path_;
  watch::Feed& feed_;
  watch::Pulse pulse_;
  bool over_ = false, is_away_ = false, said_partly_ = false;
  int64_t over_ns_ = 0, pause_ns_ = kBetweenLooksNs, retry_ns_ = kNsPerSecond;
};

// What is new since the tracker took the last; all of it at the end, when the run is judged.
Result<record::Recording> Follower::Read() {
  if (over_) return record::ReadRun(path_);
  const int64_t sent_ns = feed_.sent_until_ns();
  return record::ReadEndOfRun(path_, sent_ns == 0 ? kAll : MonotonicNs() - sent_ns + kOverlapNs);
}

std::optional<int> Follower::Look() {
  const int64_t cpu_ns = ThreadCpuNs();
  auto recording = Read();
  if (recording && !recording->stages.empty() && !over_) {
    const int64_t now_ns = MonotonicNs();
    over_ = HasEnded(*recording) || pulse_.IsGone(recording->stages.back().end_ns, now_ns);
    over_ns_ = now_ns;
    if (over_) recording = Read();
  }
  pause_ns_ = std::clamp(kTimesALook * (ThreadCpuNs() - cpu_ns), kBetweenLooksNs, kLongestPauseNs);
  if (!recording) {
    if (recording.error().code == ErrorCode::kNotFound) return Fail(recording.error(), kExitFailure);
    return std::nullopt;  // no room for the copy that is read, want of memory: perhaps at the next look
  }
  return Judge(feed_.Bring(*recording, over_));
}

std::optional<int> Follower::Judge(const watch::Attempt& attempt) {
  Say(attempt);
  if (attempt.end == End::kRefused) return kExitUsage;
  if (attempt.end == End::kFailed) {
    pause_ns_ = std::max(pause_ns_, retry_ns_);
    retry_ns_ = std::min(2 * retry_ns_, kLongestPauseNs);
  } else {
    retry_ns_ = kNsPerSecond;
  }
  if (feed_.done()) return 0;
  if (over_ && MonotonicNs() - over_ns_ > kDeliversForNs) return kExitUsage;
  return std::nullopt;
}

// Once when it begins, and once when it is over.
void Follower::Say(const watch::Attempt& attempt) {
  const std::string who = feed_.name();
  if (attempt.end == End::kRefused)
    return SayLine(fmt::format("{} refuses what it is sent, and is sent no more: {}", who, attempt.problem));
  const bool away = attempt.end == End::kFailed;
  if (away && !is_away_)
    SayLine(fmt::format("{} takes nothing now ({}): it is tried again, and will get what it misses", who,
                        attempt.problem));
  if (!away && is_away_) SayLine(fmt::format("{} has got what it missed", who));
  is_away_ = away;
  if (!feed_.partly().empty() && !std::exchange(said_partly_, true))
    SayLine(fmt::format("{}: {}", who, feed_.partly()));
}

int Follow(const std::string& path, watch::Feed& feed) {
  Follower follower(path, feed);
  while (true) {
    if (const auto status = follower.Look()) return *status;
    std::this_thread::sleep_for(std::chrono::nanoseconds(follower.pause_ns()));
  }
}

int SendOnce(const std::string& path, watch::Feed& feed) {
  const auto recording = record::ReadRun(path);
  if (!recording) return Fail(recording.error(), StatusOf(recording.error()));
  const watch::Attempt attempt = feed.Bring(*recording, /*over=*/true);
  if (attempt.end != End::kDelivered) {
    return Fail(
        {ErrorCode::kIo, fmt::format("{} has not taken all of the run: {}", feed.name(), attempt.problem),
         "sent again, what it has already is not there twice"},
        kExitFailure);
  }
  Print(stderr, "{}: {} values\n", feed.name(), FormatCount(static_cast<double>(feed.sent())));
  if (!feed.partly().empty()) Print(stderr, "{}\n", feed.partly());
  return 0;
}

}  // namespace

int ExportToTracker(const TrackerExport& wanted) {
  const auto name = watch::TrackerNamed(wanted.tracker);
  if (!name) return Fail(name.error(), kExitUsage);
  if (wanted.runs.size() != 1 || MeansTraces(wanted.runs)) {
    return Fail({ErrorCode::kInvalidArgument,
                 fmt::format("--to {} is for one run, not for traces", MaskUrls(wanted.tracker)),
                 "fullbore export last --to " + MaskUrls(wanted.tracker)},
                kExitUsage);
  }
  const auto path = FindRun(wanted.directory, wanted.runs[0]);
  if (!path) return Fail(path.error(), StatusOf(path.error()));
  using Origin = watch::Feed::Origin;
  watch::Feed feed(watch::MakeTracker(*name), wanted.follow ? Origin::kLive : Origin::kFile);
  return wanted.follow ? Follow(*path, feed) : SendOnce(*path, feed);
}

}  // namespace fullbore::cli
