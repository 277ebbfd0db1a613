#include "cli/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "cli/peers.h"
#include "explain/roofline/devices.h"

namespace fullbore::cli {
namespace {

std::string NamesOfChanges() {
  std::string names;
  for (const replay::Change* change : replay::AllChanges())
    names += (names.empty() ? "" : ", ") + std::string(change->id());
  return names;
}

Error NoSuchDevice(std::string_view typed) {
  return {ErrorCode::kInvalidArgument, fmt::format("--what-if: no device is called '{}'", typed),
          roofline::HintForDevice(typed, replay::kDevicePrefix)};
}

// With the number that was typed, too: "workers=4" for "num_workers=4"; "device=H100" for "H100".
std::optional<std::string> ChangeMeant(const std::string& typed) {
  const size_t equals = std::min(typed.find('='), typed.size());
  const std::string name = typed.substr(0, equals), number = typed.substr(equals);
  const std::string device = std::string(replay::kDevicePrefix) + typed;
  if (replay::ChangeNamed(device) != nullptr) return device;
  std::vector<std::string> names;
  for (const replay::Change* change : replay::AllChanges()) names.emplace_back(change->id());
  for (const char* numbered : {"links", "accumulate", "bucket", "device"}) names.emplace_back(numbered);
  std::optional<std::string> meant = ChangeOfPeers(name);
  if (!meant) meant = Nearest(name, names);
  if (meant && replay::ChangeNamed(*meant + number) != nullptr) return *meant + number;
  return meant && replay::ChangeNamed(*meant) != nullptr ? meant : std::nullopt;
}

Error NoSuchChange(const std::string& typed) {
  const auto meant = ChangeMeant(typed);
  return {ErrorCode::kInvalidArgument, fmt::format("--what-if: no change is called '{}'", typed),
          meant ? fmt::format("did you mean {}?", *meant)
                : "the changes are " + NamesOfChanges() +
                      ", workers=N, links=N, accumulate=N, bucket=MB and device=NAME"};
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
    if (changes.back() != nullptr) continue;
    return name.starts_with(replay::kDevicePrefix) ? NoSuchDevice(name.substr(replay::kDevicePrefix.size()))
                                                   : NoSuchChange(name);
  }
  return changes;
}

Result<std::optional<diagnose::MemoryChange>> MemoryChangeNamed(const std::vector<std::string>& names) {
  if (names.empty()) return std::optional<diagnose::MemoryChange>();
  diagnose::MemoryChange change;
  for (const std::string& name : names) {
    const auto read = diagnose::ReadMemoryChange(name, change);
    if (!read) return read.error();
    if (*read) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--what-if: '{}' is for traces of devices; of a run, memory is said", name),
                 "fullbore explain RUN --what-if batch=64,seq=4096"};
  }
  return std::optional(std::move(change));
}

}  // namespace fullbore::cli
