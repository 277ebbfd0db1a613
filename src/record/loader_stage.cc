#include "record/loader_stage.h"

namespace fullbore::record {

namespace {

constexpr std::array<std::string_view, kLoaderStages.size()> kNames = {"read", "decode",  "transform",
                                                                       "user", "collate", "copy"};

}  // namespace

std::string_view Name(LoaderStage stage) { return kNames[Index(stage)]; }

std::optional<LoaderStage> LoaderStageNamed(std::string_view name) {
  for (const LoaderStage stage : kLoaderStages) {
    if (Name(stage) == name) return stage;
  }
  return std::nullopt;
}

std::optional<Metric> BlockedIn(LoaderStage stage) {
  switch (stage) {
    case LoaderStage::kRead:
      return Metric::kLoaderBlockedCore;
    case LoaderStage::kUser:
      return Metric::kLoaderBlockedUser;
    case LoaderStage::kCollate:
      return Metric::kLoaderBlockedRoom;
    case LoaderStage::kDecode:
    case LoaderStage::kTransform:
    case LoaderStage::kCopy:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace fullbore::record
