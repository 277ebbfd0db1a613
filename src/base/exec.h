// What execvpe and posix_spawnp take, from texts.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fullbore {

// This process's environment with `added` in front of it, "NAME=value" each.
std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& added);

// Ends with a null pointer. Points into `texts`, which outlives it.
std::vector<char*> Pointers(std::vector<std::string>& texts);

}  // namespace fullbore
