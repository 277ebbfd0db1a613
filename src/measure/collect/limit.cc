#include "measure/collect/limit.h"

#include <fmt/format.h>

#include "base/text.h"

namespace fullbore::collect {

std::optional<std::string> WhyOver(const Limit& limit, const Progress& progress) {
  if (progress.verdict_is_sure)
    return fmt::format("after {} with a verdict that is sure", FormatDuration(progress.time_ns));
  if (limit.steps && progress.steps >= *limit.steps)
    return fmt::format("after {} steps, in {}", progress.steps, FormatDuration(progress.time_ns));
  if (limit.time_ns && progress.time_ns >= *limit.time_ns)
    return fmt::format("after {}", FormatDuration(*limit.time_ns));
  return std::nullopt;
}

}  // namespace fullbore::collect
