#include "record/roofline.h"

#include <array>

namespace fullbore::record {

std::string_view Name(RooflineReason reason) {
  constexpr std::array<std::string_view, 18> kNames = {"few-tiles",
                                                       "misaligned",
                                                       "thin-product",
                                                       "small-products",
                                                       "no-tensor-cores",
                                                       "few-channels",
                                                       "depthwise",
                                                       "grouped",
                                                       "dilated",
                                                       "layout",
                                                       "attention-unfused",
                                                       "attention-slow",
                                                       "normalisation-unfused",
                                                       "elementwise-chain",
                                                       "small-kernels",
                                                       "strided",
                                                       "tiny",
                                                       "low-bandwidth"};
  return kNames[static_cast<size_t>(reason)];
}

}  // namespace fullbore::record
