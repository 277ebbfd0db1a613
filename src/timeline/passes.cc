#include "timeline/passes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "record/activity.h"

namespace fullbore::timeline {

using record::ChannelRecord;
using record::EventKind;

namespace {

// What `a` says of a compiled function's call (record/channel.h).
constexpr int64_t kCompiledStep = 2;

// Of data that no loader delivers: a validation does next to nothing between its passes, a program that plays does.
constexpr double kDense = 0.7;
// Samples of the line sampler that tell a program which plays in an environment.
constexpr int64_t kMinInEnvironment = 3;
constexpr double kPartInEnvironment = 0.02;

EventKind KindOf(const ChannelRecord& event) { return static_cast<EventKind>(event.kind); }

bool IsOtherPass(const ChannelRecord& event) { return KindOf(event) == EventKind::kForward && event.a == 0; }
bool Evaluates(const ChannelRecord& pass) { return (pass.c & record::kPassInEvaluation) != 0; }
bool IsOfTrained(const ChannelRecord& pass) { return (pass.c & record::kPassOfTrained) != 0; }
bool IsApart(const ChannelRecord& pass) { return (pass.c & record::kPassOfApart) != 0; }
bool HasGradients(const ChannelRecord& pass) { return (pass.c & record::kPassWithGradients) != 0; }
bool IsSaidToValidate(const ChannelRecord& pass) { return pass.b == 1; }

int64_t Duration(const ChannelRecord& event) { return event.end_ns - event.begin_ns; }

// After fewer passes, a slow one would look like growth.
constexpr size_t kLeastGaps = 7;

struct Gap {
  int64_t ns = 0;   // that no event covers
  size_t next = 0;  // the pass or the wait for a batch that ends it
};

// What follows an event, until the next pass or the next wait for a batch.
std::optional<Gap> GapAfter(size_t event, const std::vector<ChannelRecord>& events) {
  int64_t covered_ns = 0, at_ns = events[event].end_ns;
  for (size_t i = event + 1; i < events.size(); ++i) {
    const EventKind kind = KindOf(events[i]);
    if (events[i].begin_ns < at_ns || kind == EventKind::kLine) continue;
    if (kind == EventKind::kNext || kind == EventKind::kForward)
      return Gap{events[i].begin_ns - events[event].end_ns - covered_ns, i};
    covered_ns += Duration(events[i]);
    at_ns = events[i].end_ns;
  }
  return std::nullopt;
}

// What follows the last pass; its loader may be asked in vain for one more batch.
int64_t NsUntilTrainingGoesOn(size_t last, const std::vector<ChannelRecord>& events) {
  const auto gap = GapAfter(last, events);
  if (!gap) return 0;
  const bool ends_epoch = KindOf(events[gap->next]) == EventKind::kNext && events[gap->next].a == 0;
  const auto after = ends_epoch ? GapAfter(gap->next, events) : std::nullopt;
  return gap->ns + (after ? after->ns : 0);
}

// How much more than its beginning a line of numbers takes altogether, by the means of its two halves.
double GrowthOf(const std::vector<int64_t>& gaps_ns) {
  const auto count = static_cast<double>(gaps_ns.size());
  const auto half = static_cast<std::ptrdiff_t>(gaps_ns.size() / 2);
  const auto early_ns =
      static_cast<double>(std::accumulate(gaps_ns.begin(), gaps_ns.begin() + half, int64_t{0}));
  const auto late_ns = static_cast<double>(std::accumulate(gaps_ns.end() - half, gaps_ns.end(), int64_t{0}));
  const double apart = count - static_cast<double>(half);  // the middles of the halves
  return (late_ns - early_ns) / static_cast<double>(half) / apart * count * (count - 1) / 2;
}

}  // namespace

bool IsTraining(const ChannelRecord& event) {
  return KindOf(event) == EventKind::kBackward ||
         (KindOf(event) == EventKind::kForward && (event.a == 1 || event.a == kCompiledStep));
}

bool Passes::PlaysInEnvironment() const {
  return samples_in_environment_ >= kMinInEnvironment &&
         static_cast<double>(samples_in_environment_) >=
             kPartInEnvironment * static_cast<double>(samples_between_);
}

std::vector<PassFor> Passes::Of(const std::vector<ChannelRecord>& events,
                                const std::set<uint16_t>& training_loaders) {
  ++steps_;
  evaluates_ = frozen_ = false;
  for (const ChannelRecord& event : events) {
    if (KindOf(event) != EventKind::kLine || event.b != 0) continue;
    ++samples_between_;
    samples_in_environment_ += record::ActivityNumbered(event.c) == record::Activity::kEnvironment;
  }
  std::vector<PassFor> named(events.size(), PassFor::kTraining);
  Stretch stretch;
  int64_t backward_until_ns = 0;  // what is called within a backward pass is computed again for it
  for (size_t i = 0; i < events.size(); ++i) {
    const ChannelRecord& event = events[i];
    if (KindOf(event) == EventKind::kBackward) backward_until_ns = std::max(backward_until_ns, event.end_ns);
    if (IsTraining(event)) {
      Name(stretch, events, training_loaders, named);
      stretch = {};
    } else if (KindOf(event) == EventKind::kNext && event.a != 0) {
      stretch.batches.push_back(i);
    } else if (IsOtherPass(event) && event.begin_ns >= backward_until_ns) {
      stretch.passes.push_back(i);
    }
  }
  Name(stretch, events, training_loaders, named);
  AddUp(events, named);
  return named;
}

bool Passes::Validates(const Stretch& stretch, const std::vector<ChannelRecord>& events,
                       const std::set<uint16_t>& training_loaders) {
  const auto any = [&](auto is) {
    return std::ranges::any_of(stretch.passes, [&](size_t i) { return is(events[i]); });
  };
  if (any(IsSaidToValidate)) return true;
  if (!any(Evaluates)) return false;
  const bool of_trained = any([](const ChannelRecord& pass) { return Evaluates(pass) && IsOfTrained(pass); });
  const bool of_copy =
      any([](const ChannelRecord& pass) { return Evaluates(pass) && (pass.c & record::kPassOfCopy) != 0; });
  const bool not_known = !any([](const ChannelRecord& pass) { return IsOfTrained(pass) || IsApart(pass); });
  size_t of_own = 0, of_training = 0;  // batches taken for the passes
  bool begun_anew = false;
  for (const size_t i : stretch.batches) {
    if (i > stretch.passes.back()) break;
    const bool feeds = training_loaders.contains(events[i].id);
    if (feeds && of_training++ == 0) begun_anew = events[i].c == 1;
    of_own += !feeds;
  }
  const bool fed = of_own > 0 || (begun_anew && of_training > 1);
  if (fed) return of_trained || of_copy || not_known;
  if (!of_trained) return false;
  if (!evaluates_) ++steps_evaluating_;
  evaluates_ = true;
  int64_t passing_ns = 0;
  for (const size_t i : stretch.passes) passing_ns += Duration(events[i]);
  const int64_t from_ns = events[stretch.passes.front()].begin_ns;
  const int64_t until_ns = events[stretch.passes.back()].end_ns;
  const bool dense = static_cast<double>(passing_ns) >= kDense * static_cast<double>(until_ns - from_ns);
  return dense && IsSeldom() && !PlaysInEnvironment();
}

void Passes::Name(const Stretch& stretch, const std::vector<ChannelRecord>& events,
                  const std::set<uint16_t>& training_loaders, std::vector<PassFor>& named) {
  if (stretch.passes.empty()) return;
  const bool validates = Validates(stretch, events, training_loaders);
  if (validates) AddValidation(stretch, events);
  bool of_trained = false, apart = false;  // without gradients
  for (const size_t i : stretch.passes) {
    if (HasGradients(events[i])) continue;
    of_trained |= IsOfTrained(events[i]);
    apart |= IsApart(events[i]);
  }
  if (apart && !validates && !frozen_) {
    ++steps_frozen_;
    frozen_ = true;
  }
  const bool frozen = apart && 2 * steps_frozen_ >= steps_;
  for (const size_t i : stretch.passes) {
    const ChannelRecord& pass = events[i];
    // A loss without parameters is what the other passes of its stretch are.
    const bool is_frozen = frozen && (IsApart(pass) || (!of_trained && !IsOfTrained(pass)));
    named[i] = validates            ? PassFor::kValidation
               : HasGradients(pass) ? PassFor::kTraining
               : is_frozen          ? PassFor::kFrozen
                                    : PassFor::kUnknown;
  }
  for (const size_t i : stretch.batches) {
    if (i > stretch.passes.back() || training_loaders.contains(events[i].id)) continue;
    named[i] = validates ? PassFor::kValidation : PassFor::kUnknown;
  }
}

void Passes::AddValidation(const Stretch& stretch, const std::vector<ChannelRecord>& events) {
  std::vector<int64_t> gaps_ns;
  for (size_t i = 0; i + 1 < stretch.passes.size(); ++i) {
    if (const auto gap = GapAfter(stretch.passes[i], events)) gaps_ns.push_back(gap->ns);
  }
  if (gaps_ns.size() < kLeastGaps) return;
  const size_t last = stretch.passes.back();
  ++validations_.count;
  validations_.ns += events[last].end_ns - events[stretch.passes.front()].begin_ns;
  validations_.between_ns += std::accumulate(gaps_ns.begin(), gaps_ns.end(), int64_t{0});
  validations_.growing_ns += std::llround(GrowthOf(gaps_ns));
  validations_.after_ns += NsUntilTrainingGoesOn(last, events);
}

void Passes::AddUp(const std::vector<ChannelRecord>& events, const std::vector<PassFor>& named) {
  bool trained = false;
  for (size_t i = 0; i < events.size(); ++i) {
    const ChannelRecord& event = events[i];
    if (KindOf(event) != EventKind::kForward || event.a > 1) continue;
    if (named[i] == PassFor::kFrozen) totals_.frozen_ns += Duration(event);
    if (named[i] != PassFor::kTraining) continue;
    totals_.forward_ns += Duration(event);
    const bool apart = event.a == 0 && IsApart(event);
    trained |= !apart;
    if (apart) totals_.apart_ns += Duration(event);
    if (apart && !trained) totals_.apart_first_ns += Duration(event);
  }
}

}  // namespace fullbore::timeline
