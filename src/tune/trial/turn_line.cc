#include "tune/trial/turn_line.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "explain/diagnose/statistics.h"

namespace fullbore::tune {

namespace {

using Lengths = SliceMeter::Lengths;

// The step during which it stood does not count: a sleep in it went on, and caches are cold behind it. Long beside what
// changing turns costs (a millisecond or two until caches are warm again), short beside what changes on a machine
// (docs/measurements.md: in the same time, slices of 0.05 s have half the error of those of 0.2 s); and of so many
// steps, so that none of them decides.
constexpr Lengths kOfTheHost = {0, 1, 0.05, 3};
// The lead is long beside what a full queue takes to become full again (1,024 launches of some microseconds).
constexpr Lengths kWithOthers = {0.3, 2, 0.8, 8};

// A second thread that computes a little beside the first needs no core of its own.
constexpr double kPartOfACore = 0.2;

// Of a slice's steps, those at this quantile and below were disturbed by nothing: what disturbs, only slows down.
// Tells as much in five seconds as the median in ten (docs/measurements.md).
constexpr double kUndisturbed = 0.25;

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

double WaitSeconds(const record::Step& step) {
  return Seconds(step.share_ns[Index(record::Share::kDataWait)] +
                 step.share_ns[Index(record::Share::kCommExposed)]);
}

// What is known to be the program's own, and comes now and then.
double PauseSeconds(const record::Step& step) {
  using record::HostOther;
  int64_t ns = 0;
  for (const HostOther part : {HostOther::kCheckpoint, HostOther::kValidation, HostOther::kGarbageCollection,
                               HostOther::kCompilation})
    ns += step.host_other_ns[static_cast<size_t>(part)];
  return Seconds(ns);
}

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

const SliceMeter::Lengths& SliceMeter::lengths() const { return leaves_out_ ? kWithOthers : kOfTheHost; }

// Whether a step of so long is before what counts.
bool SliceMeter::Leads(Work& work, double seconds) const {
  const Lengths& wanted = lengths();
  if (work.lead_seconds >= wanted.lead_seconds && work.lead_steps >= wanted.lead_steps) return false;
  work.lead_seconds += seconds;
  ++work.lead_steps;
  return true;
}

void SliceMeter::Add(int rank, const record::Step& step, int64_t beside) {
  Work& work = ranks_[rank];
  const double seconds = Seconds(step.wall_ns);
  uses_device_ = uses_device_ || step.device_ns >= 0;
  if (Leads(work, seconds)) return;
  work.samples += static_cast<double>(step.samples);
  work.samples_known = work.samples_known && step.samples > 0;
  work.seconds += seconds;
  work.waited += Seconds(step.share_ns[Index(record::Share::kDataWait)]);
  work.step_seconds.push_back(seconds);
  const double paused = PauseSeconds(step), waited = WaitSeconds(step);
  work.paused += paused;
  work.waited_for_any += waited;
  work.regular.push_back(seconds - paused - waited);
  work.beside = std::max(work.beside, beside);
  work.cores_known = work.cores_known && step.without_core_ns >= 0;
  if (!work.cores_known) return;
  work.without_core += Seconds(step.without_core_ns);
  work.on_core += Seconds(step.on_core_ns);
  work.cpu += Seconds(step.cpu_ns);
  // Where in the step it was is not known.
  const double part = seconds > 0 ? work.regular.back() / seconds : 0;
  work.without_cores.push_back(part * Seconds(step.without_core_ns));
}

double SliceMeter::blocked() const {
  if (ranks_.empty()) return 1;
  const Work& lead = ranks_.begin()->second;
  return lead.cores_known && lead.seconds > 0 ? 1 - (lead.on_core + lead.without_core) / lead.seconds : 1;
}

bool SliceMeter::FitsTheCores() const {
  double running = 0;  // threads, while the training thread was
  for (const auto& [rank, work] : ranks_) {
    const double had_core = work.seconds - work.without_core;
    if (!work.cores_known || had_core <= 0) return false;
    running += std::max(1.0, work.cpu / had_core) + static_cast<double>(work.beside);
  }
  return running <= static_cast<double>(cores_) + kPartOfACore;
}

double SliceMeter::UndisturbedOf(const Work& lead) const {
  std::vector<double> steps = lead.regular;
  if (FitsTheCores()) {
    for (size_t i = 0; i < steps.size(); ++i) steps[i] -= lead.without_cores[i];
  }
  const auto count = static_cast<double>(steps.size());
  const double mean = (lead.seconds - lead.paused) / count;
  const double step = diagnose::Quantile(std::move(steps), kUndisturbed) + lead.waited_for_any / count;
  return step > 0 && mean > 0 ? mean / step : 1;
}

void SliceMeter::BeginSlices(bool leaves_out) {
  leaves_out_ = leaves_out;
  ranks_.clear();
  last_step_.reset();
}

std::optional<Slice> SliceMeter::Take() {
  if (ranks_.empty()) return std::nullopt;
  const Work& lead = ranks_.begin()->second;
  const Lengths& wanted = lengths();
  const size_t steps = lead.step_seconds.size();
  if (lead.seconds < wanted.seconds || steps < wanted.steps) return std::nullopt;
  if (!last_step_) last_step_ = steps + more_(random_);
  if (steps < *last_step_) return std::nullopt;
  Slice slice{lead.seconds,
              static_cast<double>(steps) / lead.seconds,
              0,
              lead.waited / lead.seconds,
              BurstOf(lead.step_seconds, lead.seconds),
              std::min(1.0, lead.paused / lead.seconds),
              UndisturbedOf(lead)};
  bool samples_known = true;
  for (const auto& [rank, work] : ranks_) {
    samples_known = samples_known && work.samples_known;
    if (work.seconds > 0) slice.samples += work.samples / work.seconds;
  }
  if (!samples_known) slice.samples = 0;
  BeginSlices(leaves_out_);
  return slice;
}

Result<std::pair<TurnLine, UniqueFd>> TurnLine::Make() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoError("cannot make a socket for turns", errno);
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
      warm_.blocked = meter_.blocked();
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
                {"waited", warm_.waited},
                {"blocked", warm_.blocked},
                {"warmup_steps", warm_.steps}});
  }
  const Slice slice = *std::exchange(slice_, std::nullopt);
  Say({{"what", "slice"},
       {"seconds", slice.seconds},
       {"steps", slice.steps},
       {"samples", slice.samples},
       {"waited", slice.waited},
       {"burst", slice.burst},
       {"paused", slice.paused},
       {"undisturbed", slice.undisturbed}});
}

}  // namespace fullbore::tune
