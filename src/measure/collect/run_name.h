// What a run is called that nobody named.
#pragma once

#include <string>
#include <vector>

namespace fullbore::collect {

// "train" for `python -u train.py --x`: what a run of this command is called.
std::string NameOf(const std::vector<std::string>& command);
// "2026-11-21-0915-train": the id of such a run that begins now.
std::string NameWithTime(const std::string& name);

}  // namespace fullbore::collect
