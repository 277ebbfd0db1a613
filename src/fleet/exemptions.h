// The file of exemptions, TOML:
//
//   [[exempt]]
//   partition = "interactive"
//   why       = "people think there"
//
//   [[exempt]]
//   user    = "anna"
//   command = "jupyter"
//   why     = "a notebook between two cells"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/sums.h"

namespace fullbore::fleet {

// `path` is for messages, which name the line. Each rule names something, and says why.
Result<std::vector<Exemption>> ParseExemptions(std::string_view text, const std::string& path);
Result<std::vector<Exemption>> ReadExemptions(const std::string& path);

}  // namespace fullbore::fleet
