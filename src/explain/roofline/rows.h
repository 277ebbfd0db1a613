// The calls of a trace's operators, summed up by operator and shape, with their work and their limit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "explain/roofline/chains.h"
#include "explain/roofline/devices.h"
#include "explain/roofline/work.h"
#include "record/roofline.h"
#include "timeline/device/steps.h"
#include "timeline/device/trace.h"

namespace fullbore::roofline {

// Kernels of products, convolutions and attention.
inline constexpr uint32_t kMatrixLanes = timeline::Bit(timeline::Lane::kMatmul) |
                                         timeline::Bit(timeline::Lane::kMatmulTensor) |
                                         timeline::Bit(timeline::Lane::kAttention);

struct Row {
  uint16_t shape = 0;     // into OperatorLog::shapes
  uint8_t gradients = 0;  // as in TiedCall
  bool covered = false;   // operators inside do the work: these are the kernels around them
  int64_t count = 0, kernels = 0, device_ns = 0;
  int64_t count_in_steps = 0, ns_in_steps = 0;
  int64_t in_attention_ns = 0, in_normalisation_ns = 0;  // inside an operator that is made of others

  // Of the kernel that takes most of the time.
  timeline::NameId kernel = 0;
  timeline::Lane lane = timeline::Lane::kOtherCompute;
  uint16_t blocks = 0;
  bool converts_layout = false;  // a kernel beside it turns NCHW into NHWC or back

  Work work;
  std::optional<double> attainable_ns;  // of one call; absent without a known device
  record::Bound bound = record::Bound::kUnknown;
};

struct Rows {
  std::vector<Row> rows;
  std::vector<uint32_t> row_of_op;              // by DeviceTrace::ops; kNoRow where it belongs to none
  std::vector<std::vector<ChainLink>> streams;  // the calls in the order in which they ran
  // Kernels that belong to no known operator.
  std::map<timeline::Lane, int64_t> unjudged_ns;
  int64_t unjudged_in_steps_ns = 0, matrix_unjudged_in_steps_ns = 0;
  int64_t unlaunched_ns = 0;  // of them, those whose launch is not in the trace
};

// Only what the device does for itself: neither collectives nor copies over the link to the host. `device`
// may be null.
Rows SumUp(const timeline::DeviceTrace& trace, const std::vector<timeline::StepBounds>& steps,
           const Device* device);

}  // namespace fullbore::roofline
