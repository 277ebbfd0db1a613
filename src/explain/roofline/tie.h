// Which call of an operator each kernel belongs to: the innermost one whose work is known and that encloses
// the launch, on the thread that launched it.
//
// Operators nest. aten::convolution_backward of PyTorch 1.10 calls one operator a gradient; attention in its
// plain form calls products and a softmax; a convolution may be computed by a product. Their work must not be
// counted twice: an outer operator counts only where no operator inside does the same kind of work.
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/device/trace.h"

namespace fullbore::roofline {

struct TiedCall {
  uint32_t parent = timeline::kNone;  // the enclosing call, into DeviceTrace::operators.calls
  uint8_t gradients = 0;              // of a convolution's backward: those whose operators launched kernels
  bool covered = false;               // operators inside do its work: its own kernels are by-work
  // Anywhere inside an operator that is made of others.
  bool in_attention = false, in_normalisation = false;
};

struct Tied {
  std::vector<TiedCall> calls;       // by call
  std::vector<uint32_t> call_of_op;  // by DeviceTrace::ops; kNone where no known operator encloses the launch
};

// Linear in the calls and operations, however deep they nest.
Tied Tie(const timeline::DeviceTrace& trace);

}  // namespace fullbore::roofline
