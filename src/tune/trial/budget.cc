#include "tune/trial/budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/ending_signals.h"
#include "base/text.h"

namespace fullbore::tune {

namespace {

volatile sig_atomic_t g_interrupted = 0;
void OnInterrupt(int signal) { g_interrupted = signal; }

}  // namespace

Budget::Budget(double seconds)
    : seconds_(seconds), end_ns_(MonotonicNs() + static_cast<int64_t>(seconds * 1e9)) {
  g_interrupted = 0;
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  const sigset_t ending = EndingSignals();
  for (int signal = 1; signal < NSIG; ++signal)
    if (sigismember(&ending, signal) == 1) sigaction(signal, &action, &before_[signal]);
}

Budget::~Budget() {
  for (const auto& [signal, action] : before_) sigaction(signal, &action, nullptr);
}

double Budget::left_s() const { return static_cast<double>(end_ns_ - MonotonicNs()) / 1e9; }

std::string Budget::text() const {
  return "the budget of " + (seconds_ < 60 ? fmt::format("{:g} s", seconds_)
                                           : FormatDuration(static_cast<int64_t>(seconds_ * 1e9)));
}

void Budget::Limit(MeasureOptions& options) const {
  options.end_ns = end_ns_;
  options.end_of = text();
  options.precision.most_seconds = std::max(1.0, std::min(options.precision.most_seconds, left_s()));
  // Interrupted just before the trial's own signals were watched.
  options.given_up = [this] { return interrupted(); };
}

int Budget::interrupted_by() const {
  return interrupted_by_ != 0 ? interrupted_by_ : static_cast<int>(g_interrupted);
}

}  // namespace fullbore::tune
