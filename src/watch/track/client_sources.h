// What runs in the user's own Python, embedded at build time by cmake/EmbedText.cmake.
#pragma once

#include <string_view>

namespace fullbore::watch {

extern const std::string_view kWandbClient;  // wandb_client.py

}  // namespace fullbore::watch
