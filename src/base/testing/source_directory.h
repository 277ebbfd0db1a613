// Where the checkout lies that a test was built from, for the files that it reads: "/home/me/fullbore".
#pragma once

#include <string>

namespace fullbore::testing {

std::string SourceDirectory();

}  // namespace fullbore::testing
