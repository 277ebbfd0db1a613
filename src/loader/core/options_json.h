// LoaderOptions as JSON and back: how a loader's description travels to another process, and how the Python
// face hands it over. Every member has its C++ name; a transform is {"name": "Resize", "height": 256, ...}.
// What is absent has its default; an unknown name is an error, for it is most likely mistyped.
#pragma once

#include <string>
#include <string_view>

#include "fullbore/loader.h"

namespace fullbore::loader {

std::string OptionsToJson(const LoaderOptions& options);
Result<LoaderOptions> OptionsFromJson(std::string_view text);

}  // namespace fullbore::loader
