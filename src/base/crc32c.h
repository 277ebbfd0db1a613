// CRC-32C (Castagnoli), as TFRecord, TensorBoard and our shard indexes use it.
#pragma once

#include <cstdint>
#include <span>

namespace fullbore {

uint32_t Crc32c(std::span<const uint8_t> bytes);

// The form that TFRecord stores: a plain CRC of bytes that contain a CRC would be weak.
constexpr uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace fullbore
