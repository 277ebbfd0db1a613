// Why an operator stays far from its limit, told by its shape and its kernel. A pure function: everything it
// may look at is in Facts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "explain/roofline/devices.h"
#include "explain/roofline/work.h"
#include "record/roofline.h"
#include "timeline/device/kinds.h"

namespace fullbore::roofline {

struct Facts {
  timeline::OperatorKind kind = timeline::OperatorKind::kNone;
  Work work;
  double device_ns = 0;                 // of one call
  std::optional<double> attainable_ns;  // of one call; absent without a known device
  record::Bound bound = record::Bound::kUnknown;
  std::string_view kernel;  // that takes most of its time
  timeline::Lane lane = timeline::Lane::kOtherCompute;
  uint16_t blocks = 0;             // of that kernel; 0 where unknown
  int64_t multiprocessors = 0;     // of the device; 0 where unknown
  const Device* device = nullptr;  // null where unknown
  bool no_matrix_units = false;    // the device has none, as its name says
  bool converts_layout = false;    // kernels beside it turn NCHW into NHWC or back

  // What stands around it (chains.h).
  bool in_attention = false, in_normalisation = false, among_small = false;
  int64_t chain = 0;  // length of the chain of elementwise operators it is in
};

// Below this part of the attainable, an operator is far from its limit and wants a reason. Good matrix
// products reach 0.7 to 0.8 of the peak, large copies 0.8 to 0.9 of the bandwidth.
inline constexpr double kFar = 0.5;

// The most specific first; empty for an operator near its limit. Without a known device only what the shape
// tells by itself.
std::vector<record::RooflineWhy> ReasonsFor(const Facts& facts);

}  // namespace fullbore::roofline
