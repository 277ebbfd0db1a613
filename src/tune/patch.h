// The chosen settings as a change of the user's own file.
#pragma once

#include <string>
#include <string_view>

#include "tune/settings.h"

namespace fullbore::tune {

// A unified diff that sets the arguments of the call that begins at `line` (from 1), for those settings that stand there
// in plain sight: `num_workers=2`, not a variable. Empty where none does. `path` is what the diff calls the file.
std::string PatchOf(std::string_view text, const std::string& path, int line, const Settings& settings);

}  // namespace fullbore::tune
