#include "tune/trial/turn_line.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace fullbore::tune {

namespace {

// What of a slice counts, and what goes before it and does not.
struct Lengths {
  double lead_seconds;
  int64_t lead_steps;
  double seconds;
  size_t steps;
};
// Long beside what changing turns costs (some milliseconds until caches are warm again), short beside what changes on a
// machine; and of so many steps, so that none of them decides.
constexpr Lengths kOfTheHost = {0, 0, 0.2, 5};
// The lead is long beside what a full queue takes to become full again (1,024 launches of some microseconds).
constexpr Lengths kWithOthers = {0.3, 2, 0.8, 8};

// How many times as fast the first half of the steps' time was as the second.
double BurstOf(const std::vector<double>& step_seconds, double all_seconds) {
  double early_seconds = 0;
  size_t early = 0;
  while (early < step_seconds.size() && early_seconds + step_seconds[early] / 2 < all_seconds / 2)
    early_seconds += step_seconds[early++];
  const double late_seconds = all_seconds - early_seconds;
  const size_t late = step_seconds.size() - early;
  if (early == 0 || late == 0 || early_seconds <= 0 || late_seconds <= 0) return 1;
  return static_cast<double>(early) / early_seconds * late_seconds / static_cast<double>(late);
}

}  // namespace

// Whether a step of so long is before what counts.
bool SliceMeter::Leads(Work& work, double seconds) const {
  if (!leaves_out_ ||
      (work.lead_seconds >= kWithOthers.lead_seconds && work.lead_steps >= kWithOthers.lead_steps))
    return false;
  work.lead_seconds += seconds;
  ++work.lead_steps;
  return true;
}

void SliceMeter::Add(int rank, const record::Step& step) {
  Work& work = ranks_[rank];
  const double seconds = static_cast<double>(step.wall_ns) / 1e9;
  uses_device_ = uses_device_ || step.device_ns >= 0;
  if (Leads(work, seconds)) return;
  work.samples += static_cast<double>(step.samples);
  work.samples_known = work.samples_known && step.samples > 0;
  work.seconds += seconds;
  work.waited += static_cast<double>(step.share_ns[Index(record::Share::kDataWait)]) / 1e9;
  work.step_seconds.push_back(seconds);
}

void SliceMeter::BeginSlices(bool leaves_out) {
  leaves_out_ = leaves_out;
  ranks_.clear();
}

std::optional<Slice> SliceMeter::Take() {
  if (ranks_.empty()) return std::nullopt;
  const Work& lead = ranks_.begin()->second;
  const Lengths& wanted = leaves_out_ ? kWithOthers : kOfTheHost;
  if (lead.seconds < wanted.seconds || lead.step_seconds.size() < wanted.steps) return std::nullopt;
  Slice slice{lead.seconds, static_cast<double>(lead.step_seconds.size()) / lead.seconds, 0,
              lead.waited / lead.seconds, BurstOf(lead.step_seconds, lead.seconds)};
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

char TurnLine::Word(int flags) {
  char word = 0;
  const ssize_t size = recv(fd_.get(), &word, 1, MSG_DONTWAIT | flags);
  if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) is_over_ = true;
  return size == 1 ? word : '\0';
}

bool TurnLine::IsOver() {
  (void)Word(MSG_PEEK);
  return is_over_;
}

bool TurnLine::Stands(const std::optional<Warm>& warm) {
  switch (state_) {
    case State::kWarmsUp:
      if (!warm) break;
      warm_ = *warm;
      state_ = State::kStands;
      break;
    case State::kRuns:
      slice_ = meter_.Take();
      if (slice_) state_ = State::kStands;
      break;
    case State::kStands:
      if (const char word = Word(0); word != 0) {
        if (!ran_) meter_.BeginSlices(word == kRunBeside);
        ran_ = true;
        state_ = State::kRuns;
      }
      break;
  }
  return stands();
}

void TurnLine::OnStood() {
  if (!slice_) {
    return Say({{"what", "ready"},
                {"uses_device", meter_.uses_device()},
                {"most_steps", warm_.most_steps},
                {"waited", warm_.waited}});
  }
  const Slice slice = *std::exchange(slice_, std::nullopt);
  Say({{"what", "slice"},
       {"seconds", slice.seconds},
       {"steps", slice.steps},
       {"samples", slice.samples},
       {"waited", slice.waited},
       {"burst", slice.burst}});
}

}  // namespace fullbore::tune
