#include "tune/trial/turn_line.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace fullbore::tune {

namespace {

// Long beside what changing turns costs (some milliseconds until caches are warm again), short beside what changes on a
// machine; and of so many steps, so that none of them decides.
constexpr double kSliceSeconds = 0.2;
constexpr int64_t kStepsOfSlice = 5;

}  // namespace

void SliceMeter::Add(int rank, const record::Step& step) {
  Work& work = ranks_[rank];
  work.samples += static_cast<double>(step.samples);
  work.samples_known = work.samples_known && step.samples > 0;
  work.seconds += static_cast<double>(step.wall_ns) / 1e9;
  work.waited += static_cast<double>(step.share_ns[Index(record::Share::kDataWait)]) / 1e9;
  ++work.steps;
  uses_device_ = uses_device_ || step.device_ns >= 0;
}

double SliceMeter::waited() const {
  if (ranks_.empty()) return 0;
  const Work& lead = ranks_.begin()->second;
  return lead.seconds > 0 ? lead.waited / lead.seconds : 0;
}

std::optional<Slice> SliceMeter::Take() {
  if (ranks_.empty()) return std::nullopt;
  const Work& lead = ranks_.begin()->second;
  if (lead.seconds < kSliceSeconds || lead.steps < kStepsOfSlice) return std::nullopt;
  Slice slice{lead.seconds, static_cast<double>(lead.steps) / lead.seconds, 0};
  bool samples_known = true;
  for (const auto& [rank, work] : ranks_) {
    samples_known = samples_known && work.samples_known;
    if (work.seconds > 0) slice.samples += work.samples / work.seconds;
  }
  if (!samples_known) slice.samples = 0;
  ranks_.clear();
  return slice;
}

Result<std::pair<TurnLine, UniqueFd>> TurnLine::Make() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoError("no socket for turns", errno);
  return std::pair(TurnLine(UniqueFd(ends[0])), UniqueFd(ends[1]));
}

void TurnLine::Say(const nlohmann::ordered_json& word) {
  const std::string text = word.dump();
  if (send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) is_over_ = true;
}

bool TurnLine::HasWord(int flags) {
  char word;
  const ssize_t size = recv(fd_.get(), &word, 1, MSG_DONTWAIT | flags);
  if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) is_over_ = true;
  return size == 1;
}

bool TurnLine::IsOver() {
  (void)HasWord(MSG_PEEK);
  return is_over_;
}

bool TurnLine::Stands(bool is_warm) {
  switch (state_) {
    case State::kWarmsUp:
      if (is_warm) state_ = State::kStands;
      break;
    case State::kRuns:
      slice_ = meter_.Take();
      if (slice_) state_ = State::kStands;
      break;
    case State::kStands:
      if (!HasWord(0)) break;
      if (!ran_) meter_ = {};  // what it made while it warmed up is no part of a slice
      ran_ = true;
      state_ = State::kRuns;
      break;
  }
  return stands();
}

void TurnLine::OnStood() {
  if (!slice_)
    return Say({{"what", "ready"}, {"waited", meter_.waited()}, {"uses_device", meter_.uses_device()}});
  const Slice slice = *std::exchange(slice_, std::nullopt);
  Say({{"what", "slice"}, {"seconds", slice.seconds}, {"steps", slice.steps}, {"samples", slice.samples}});
}

}  // namespace fullbore::tune
