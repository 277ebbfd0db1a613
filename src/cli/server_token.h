// The token of what listens: none is needed on loopback.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace fullbore::cli {

// What `file` holds; nothing where none is named and `listen` is loopback. `instead` says how to do without a token
// where one is needed.
Result<std::optional<std::string>> TokenFor(const std::string& listen, const std::string& file,
                                            const std::string& instead);

}  // namespace fullbore::cli
