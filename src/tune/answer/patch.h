// The chosen settings as a change of the user's own file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tune/knob/settings.h"

namespace fullbore::tune {

// A unified diff that sets the arguments of the DataLoader created at `line` (from 1): in the call itself, or at the
// one constant, default or option whose value reaches it. No other byte is changed; the result is empty if nothing is.
// For each setting of the loader that the user has to change by hand, `by_hand` receives a line with the place and the
// reason. `path` is the file's name in the diff, `command` what the training was started with.
std::string PatchOf(std::string_view text, const std::string& path, int line, const Settings& settings,
                    const std::vector<std::string>& command = {},
                    std::vector<std::string>* by_hand = nullptr);

}  // namespace fullbore::tune
