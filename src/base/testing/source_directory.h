// The checkout that a test was built from, for the files that the test reads: "/home/me/fullbore".
#pragma once

#include <string>

namespace fullbore::testing {

std::string SourceDirectory();

}  // namespace fullbore::testing
