// The stages of fullbore.data through which its threads carry a sample, named as its counters and the label
// `stage` of the kLoader... metrics name them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "record/metrics.h"

namespace fullbore::record {

enum class LoaderStage : uint8_t { kRead, kDecode, kTransform, kUser, kCollate, kCopy };
inline constexpr std::array kLoaderStages = {LoaderStage::kRead,      LoaderStage::kDecode,
                                             LoaderStage::kTransform, LoaderStage::kUser,
                                             LoaderStage::kCollate,   LoaderStage::kCopy};

constexpr size_t Index(LoaderStage stage) { return static_cast<size_t>(stage); }
std::string_view Name(LoaderStage stage);  // "read"
std::optional<LoaderStage> LoaderStageNamed(std::string_view name);

// The loader has one counter per stage for the time that threads spend in it without working. What
// they wait for differs: after `read`, permission to use a core; inside `user`, the interpreter or
// whatever the function calls; after `collate`, room among the finished batches. Nothing for the other
// stages: no thread waits there.
std::optional<Metric> BlockedIn(LoaderStage stage);

}  // namespace fullbore::record
