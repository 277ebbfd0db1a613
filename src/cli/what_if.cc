#include "cli/what_if.h"

#include <fmt/format.h>

namespace fullbore::cli {
namespace {

std::string NamesOfChanges() {
  std::string names;
  for (const replay::Change* change : replay::AllChanges())
    names += (names.empty() ? "" : ", ") + std::string(change->id());
  return names;
}

}  // namespace

std::string ListOfChanges() {
  std::string list;
  for (const replay::Change* change : replay::AllChanges())
    list += fmt::format("{}{:<19} {}", list.empty() ? "" : "\n", change->id(), change->does());
  for (const char* numbered : {"workers=4", "links=4", "accumulate=8", "bucket=25"}) {
    const replay::Change* change = replay::ChangeNamed(numbered);
    list += fmt::format("\n{:<19} {}, with a number of your own", numbered, change->does());
  }
  list += fmt::format("\n{:<19} {}, which fullbore has to know: one of {}", "device=MI300X",
                      "the program runs on another device", replay::KnownDevices());
  return list;
}

Result<std::vector<const replay::Change*>> ChangesNamed(const std::vector<std::string>& names) {
  std::vector<const replay::Change*> changes;
  for (const std::string& name : names) {
    changes.push_back(replay::ChangeNamed(name));
    if (changes.back() == nullptr && name.starts_with(replay::kDevicePrefix)) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("--what-if: no device is called '{}'", name.substr(replay::kDevicePrefix.size())),
          "the devices are " + replay::KnownDevices()};
    }
    if (changes.back() == nullptr) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("--what-if: no change is called '{}'", name),
                   "the changes are " + NamesOfChanges() +
                       ", workers=N, links=N, accumulate=N, bucket=MB and device=NAME"};
    }
  }
  return changes;
}

}  // namespace fullbore::cli
