// LoaderOptions as JSON and back: how a loader's options get from Python to the engine. Every member has its C++
// name; a transform is {"name": "Resize", "height": 256, ...}. Absent members have their defaults; an unknown name is
// an error, because it is most likely a typo.
#pragma once

#include <string>
#include <string_view>

#include "fullbore/loader.h"

namespace fullbore::loader {

std::string OptionsToJson(const LoaderOptions& options);
Result<LoaderOptions> OptionsFromJson(std::string_view text);

}  // namespace fullbore::loader
