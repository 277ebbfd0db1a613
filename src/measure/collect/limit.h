// When a run that ends by itself is over (`run --for`, `run --steps`): whatever of these comes first, or a verdict that is
// sure before, as all that the rest of the time could do is repeat it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fullbore::collect {

struct Limit {
  std::optional<int64_t> time_ns;  // since the command's start
  std::optional<int64_t> steps;    // of the first rank that trains
};

struct Progress {
  int64_t time_ns = 0;
  int64_t steps = 0;
  bool verdict_is_sure = false;
};

// Why it is over, as the end of a sentence; nothing while it is not.
std::optional<std::string> WhyOver(const Limit& limit, const Progress& progress);

}  // namespace fullbore::collect
