// The chosen settings as a change of the user's own file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tune/knob/settings.h"

namespace fullbore::tune {

// A unified diff that sets the arguments of the DataLoader which is made at `line` (from 1): where the call says them,
// or where the one constant, default or option stands that reaches it. Nothing else is changed by a byte; the result is
// empty where nothing is. `by_hand` receives a line for each setting of a loader that a person has to change, with the
// place and why. `path` is what the diff calls the file, `command` what the training was started with.
std::string PatchOf(std::string_view text, const std::string& path, int line, const Settings& settings,
                    const std::vector<std::string>& command = {},
                    std::vector<std::string>* by_hand = nullptr);

}  // namespace fullbore::tune
