// The cause fp8-overhead of inefficient-kernels: products in FP8 that save less than what prepares their operands costs.
#pragma once

#include <optional>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Nothing in a program without scaled products, where the device or its peaks are not known, or where FP8 pays.
std::optional<Finding> FromFp8(const View& view);

}  // namespace fullbore::diagnose
