// A run within a run: `fullbore run` in the script of a command that is recorded itself, or a step of a job whose script
// is. Each has a run file, and the device time of the inner one must not count twice: it tells the outer recorder, which
// gives its process the role "recorder".
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fullbore::collect {

// Says in the outer run's channel that this process records; does nothing where that is no channel of this machine.
void TellOuterRun(const std::string& channel_directory);

// The processes that said so, from lines of a channel.
std::vector<int64_t> InnerRecorders(const std::vector<nlohmann::json>& lines);

}  // namespace fullbore::collect
