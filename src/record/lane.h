// What a device can be doing at a moment, by what it is for.
#pragma once

#include <cstdint>
#include <string_view>

namespace fullbore::record {

// Lanes of the sweep, by priority: when several are active at once, the time belongs to the first.
enum class Lane : uint8_t {
  kMatmulTensor,  // matrix products and convolutions on tensor cores
  kMatmul,        // the same without
  kAttention,
  kOptimizer,
  kReduction,  // reductions, normalisation, softmax
  kElementwise,
  kOtherCompute,
  kComm,
  kH2dPageable,
  kH2dPinned,
  kD2hPageable,
  kD2hPinned,
  kD2d,  // on the device, between devices, and copies of unknown direction
  kMemset,
};
inline constexpr int kLaneCount = 14;
inline constexpr uint32_t kComputeLanes = (1U << static_cast<int>(Lane::kComm)) - 1;
inline constexpr uint32_t kCommLane = 1U << static_cast<int>(Lane::kComm);
inline constexpr uint32_t kCopyLanes = ((1U << kLaneCount) - 1) & ~(kComputeLanes | kCommLane);

constexpr uint32_t Bit(Lane lane) { return 1U << static_cast<int>(lane); }
std::string_view Name(Lane lane);  // "matmul_tensor", "copy_h2d_pageable"

}  // namespace fullbore::record
