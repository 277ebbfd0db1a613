// The changes that a user may ask about: --what-if no-sync,graphs,workers=4.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "explain/replay/change/change.h"

namespace fullbore::cli {

std::string ListOfChanges();  // one per line, with what each does

Result<std::vector<const replay::Change*>> ChangesNamed(const std::vector<std::string>& names);

}  // namespace fullbore::cli
