#include "measure/collect/run_name.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cctype>
#include <ctime>
#include <filesystem>

#include "base/clock.h"

namespace fullbore::collect {

namespace fs = std::filesystem;

std::string NameOf(const std::vector<std::string>& command) {
  std::string name = command.empty() ? "run" : fs::path(command.front()).filename().string();
  for (size_t i = 1; i < command.size(); ++i) {
    const fs::path word = command[i];
    if (word.extension() == ".py" || word.extension() == ".sh") {
      name = word.stem();
      break;
    }
    if (command[i] == "-m" && i + 1 < command.size()) {
      name = command[i + 1].substr(command[i + 1].rfind('.') + 1);
      if (name != "run" && name != "launch")
        break;  // torch.distributed.run and the like: look for the script
    }
  }
  std::erase_if(name, [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_'; });
  return name.empty() ? "run" : name;
}

std::string NameWithTime(const std::string& name) {
  const auto now = static_cast<std::time_t>(WallNs() / kNsPerSecond);
  return fmt::format("{:%Y-%m-%d-%H%M}-{}", fmt::localtime(now), name);
}

}  // namespace fullbore::collect
