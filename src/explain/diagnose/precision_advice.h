// Which shorter element types the device of a run takes, as advice: tensor cores know bfloat16 and TF32 from
// compute capability 8.0 on, and float16 from 7.0 on.
#pragma once

#include <string>
#include <vector>

#include "explain/diagnose/view.h"
#include "explain/roofline/devices.h"

namespace fullbore::diagnose {

// The device of the judged rank. Null where its name was not recorded or is not in the table of devices.
const roofline::Device* DeviceOf(const View& view);

struct PrecisionAdvice {
  std::string change;            // "torch.autocast(\"cuda\", torch.bfloat16)"
  std::vector<std::string> fix;  // each one thing to do, the first for `change`
};

// For a device that is not known (null), what holds for either kind.
PrecisionAdvice PrecisionAdviceFor(const roofline::Device* device);

}  // namespace fullbore::diagnose
