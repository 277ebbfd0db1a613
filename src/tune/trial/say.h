// How trials tell what happens while they are made.
#pragma once

#include <functional>
#include <string>

namespace fullbore::tune {

using Say = std::function<void(const std::string&)>;  // one line each

}  // namespace fullbore::tune
