// Which certificates of authorities TLS trusts. libcurl knows one place for them, that of the distribution which built
// it, and a wheel brings its libcurl to others; the variables that users know from other programs it does not read at
// all.
#pragma once

#include <initializer_list>
#include <string>

namespace fullbore {

// The file that the first of these variables names, else the one where the distributions have it. Empty if there is
// none: then only libcurl's own place is left. `root` is prepended to /etc.
std::string AuthoritiesPath(std::initializer_list<const char*> variables, const std::string& root = "");

}  // namespace fullbore
