#include "record/lane.h"

#include <array>

namespace fullbore::record {

std::string_view Name(Lane lane) {
  constexpr std::array<std::string_view, kLaneCount> kNames = {"matmul_tensor",
                                                               "matmul",
                                                               "attention",
                                                               "optimizer",
                                                               "reduction",
                                                               "elementwise",
                                                               "other",
                                                               "comm",
                                                               "copy_h2d_pageable",
                                                               "copy_h2d_pinned",
                                                               "copy_d2h_pageable",
                                                               "copy_d2h_pinned",
                                                               "copy_d2d",
                                                               "memset"};
  return kNames[static_cast<size_t>(lane)];
}

}  // namespace fullbore::record
