// completion/fullbore.{bash,zsh,fish}, embedded at build time.
#pragma once

#include <string_view>

namespace fullbore::cli {

extern const std::string_view kBashScript, kZshScript, kFishScript;

}  // namespace fullbore::cli
