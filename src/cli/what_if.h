// The changes that a user may ask about: --what-if no-sync,graphs,workers=4 of a trace, batch=64,seq=4096 of a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "explain/diagnose/memory_what_if.h"
#include "explain/replay/change/change.h"

namespace fullbore::cli {

std::string ListOfChanges();  // one per line, with what each does

Result<std::vector<const replay::Change*>> ChangesNamed(const std::vector<std::string>& names);

// Of a run; nothing where none is named.
Result<std::optional<diagnose::MemoryChange>> MemoryChangeNamed(const std::vector<std::string>& names);

}  // namespace fullbore::cli
