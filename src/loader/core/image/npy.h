// NumPy's .npy format, versions 1 to 3, C order, numbers of fixed size in little-endian order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/loader.h"

namespace fullbore::loader {

struct NpyArray {
  DType dtype = DType::kUInt8;
  std::vector<int64_t> shape;
  std::span<const uint8_t> data;  // into the bytes given
};

// kCorrupt: not a .npy file, a damaged header, or data shorter than the
// shape says; longer is ignored. kUnsupported: objects (nothing is ever
// unpickled), Fortran order, big-endian, strings, types without a DType.
Result<NpyArray> ParseNpy(std::span<const uint8_t> bytes);

}  // namespace fullbore::loader
