#include "cli/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "cli/peers.h"

namespace fullbore::cli {
namespace {

std::string NamesOfChanges() {
  std::string names;
  for (const replay::Change* change : replay::AllChanges())
    names += (names.empty() ? "" : ", ") + std::string(change->id());
  return names;
}

std::string LettersAndDigits(std::string_view text) {
  std::string kept;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0) kept += static_cast<char>(std::tolower(c));
  }
  return kept;
}

// "NVIDIA GeForce RTX 4090" for "rtx4090", "NVIDIA H100 SXM" for "H100-SXM5": without makers, blanks and dashes.
std::optional<std::string> DeviceSpelt(std::string_view typed) {
  std::vector<std::string> spellings;
  std::map<std::string, std::string> devices;
  const std::string all = replay::KnownDevices();
  for (const std::string_view each : Split(all, ',')) {
    const std::string_view device = Trim(each);
    for (size_t word = 0; word != std::string_view::npos; word = device.find(' ', word + 1)) {
      spellings.push_back(LettersAndDigits(device.substr(word)));
      devices.try_emplace(spellings.back(), device);
    }
  }
  const auto nearest = Nearest(LettersAndDigits(typed), spellings);
  return nearest ? std::optional(devices.at(*nearest)) : std::nullopt;
}

Error NoSuchDevice(std::string_view typed) {
  const auto meant = DeviceSpelt(typed);
  return {
      ErrorCode::kInvalidArgument, fmt::format("--what-if: no device is called '{}'", typed),
      meant ? fmt::format("did you mean 'device={}'?", *meant) : "the devices are " + replay::KnownDevices()};
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
