// LoaderOptions from JSON: how a loader's options get from Python to the engine. Every member has its C++ name; a
// transform is {"name": "Resize", "height": 256, ...}. Absent members have their defaults; an unknown name is an error,
// because it is most likely a typo.
#pragma once

#include <string_view>

#include "fullbore/loader.h"

namespace fullbore::loader {

Result<LoaderOptions> OptionsFromJson(std::string_view text);

}  // namespace fullbore::loader
