// A moment in a recording, as written on a command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace fullbore::exporting {

// "1.5s", "200ms", "30us" or "500ns" from the beginning of the recording, or "step:12": its beginning or end,
// depending on use.
struct Moment {
  int64_t ns = 0;
  std::optional<int64_t> step;
};

Result<Moment> ParseMoment(std::string_view text);

}  // namespace fullbore::exporting
