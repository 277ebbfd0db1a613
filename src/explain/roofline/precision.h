// What tensor cores would make of matrix products and convolutions that run without them.
#pragma once

#include <array>
#include <optional>

#include "explain/roofline/devices.h"
#include "record/roofline.h"

namespace fullbore::roofline {

// The part of their time that remains: at worst, as expected, at best. Told by the shapes of the operators that could
// use tensor cores, else by the peaks alone; nothing where the device has no tensor cores.
std::optional<std::array<double, 3>> LeftOnTensorCores(const record::Roofline* judged, const Device& device);

}  // namespace fullbore::roofline
