// The stages of fullbore.data through which its threads carry a sample, as its counters name them and as the
// label `stage` of the metrics kLoader... does.
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

// The loader counts under one name, per stage, the time in which threads are there and not at work. What they
// wait for differs: behind `read`, leave to use a core; inside `user`, the interpreter or what the function
// calls; behind `collate`, room among the finished batches. Nothing for the other stages: none waits there.
std::optional<Metric> BlockedIn(LoaderStage stage);

}  // namespace fullbore::record
