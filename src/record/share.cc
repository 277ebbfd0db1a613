#include "record/share.h"

#include "base/result.h"

namespace fullbore::record {

namespace {

constexpr std::array<std::string_view, kShareCount> kShareNames = {
    "compute",    "comm_exposed", "copy_exposed", "data_wait", "sync",     "launch",
    "host_other", "gap",          "h2d",          "forward",   "backward", "optimizer"};
constexpr std::array<std::string_view, kHostOtherCount> kHostOtherNames = {
    "checkpoint", "validation", "garbage collection", "unnamed", "compilation", "without gradients"};

}  // namespace

std::string_view Name(Share share) { return kShareNames[Index(share)]; }

std::optional<Share> ShareNamed(std::string_view name) {
  for (size_t i = 0; i < kShareCount; ++i) {
    if (kShareNames[i] == name) return static_cast<Share>(i);
  }
  return std::nullopt;
}

std::optional<HostOther> HostOtherNamed(std::string_view name) {
  for (size_t i = 0; i < kHostOtherCount; ++i) {
    if (kHostOtherNames[i] == name) return static_cast<HostOther>(i);
  }
  return std::nullopt;
}

std::string_view Name(HostOther part) { return kHostOtherNames[static_cast<size_t>(part)]; }

}  // namespace fullbore::record
