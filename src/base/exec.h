// Null-terminated argument and environment arrays for execvpe and posix_spawnp, made from strings.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fullbore {

// This process's environment with `added` in front of it, each entry "NAME=value".
std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& added);

// Ends with a null pointer. Points into `texts`, which must outlive it.
std::vector<char*> Pointers(std::vector<std::string>& texts);

}  // namespace fullbore
