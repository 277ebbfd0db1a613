// Whether a device has units for matrices (NVIDIA's tensor cores, AMD's matrix cores, Intel's XMX), and which short
// types they take. Told by the family that its name stands for, so that devices without a row in the table of devices
// are known as well; where there is no name, by the kernels that its libraries chose.
#pragma once

#include <string_view>
#include <vector>

#include "record/recording.h"
#include "record/step_graph.h"

namespace fullbore::roofline {

// "Tesla P100-PCIE-16GB": kNone; "NVIDIA GeForce RTX 2080 Ti": kFloat16. kUnknown for a family that is not known here.
record::MatrixUnits UnitsOfDevice(std::string_view name);

// What the device needs to run these kernels: those of Ampere and later say bfloat16, those of Volta and Turing, which
// run on both and are never chosen on others, float16.
record::MatrixUnits UnitsForKernels(const std::vector<record::KernelStats>& kernels);

// By the name, else by the kernels.
record::MatrixUnits MatrixUnitsOf(std::string_view device, const std::vector<record::KernelStats>& kernels);

}  // namespace fullbore::roofline
