// What devices can do at their best, as their makers say: a table of facts, each with its source. The figures
// hold at boost clock and without sparsity; a kernel that reaches nine tenths of them is excellent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "timeline/device/operators.h"

namespace fullbore::roofline {

// 10^12 operations a second, 0 where the device has no such unit. A multiplication with its addition is two.
struct Peaks {
  double fp32 = 0;         // outside of matrix units
  double fp32_matrix = 0;  // AMD's matrix cores take float32 as it is
  double tf32 = 0;         // NVIDIA's tensor cores, where the program allows TF32
  double fp16 = 0;         // with float32 accumulation, as PyTorch's libraries ask for
  double bf16 = 0;
  double fp8 = 0;
};

// What libraries reach at their best, as others have measured and published it; 0 where nobody has that we know of.
// Times are those of a kernel with next to nothing to do: below them no kernel of its class gets.
struct Reached {
  const char* source = "";
  double product_tflops = 0;       // 16 bits, the best of many shapes
  double product_fp32_tflops = 0;  // float32 as it is, outside of NVIDIA's tensor cores
  double attention_tflops = 0, attention_backward_tflops = 0;  // flash attention as PyTorch calls it
  double elementwise_gb = 0;                                   // 10^9 bytes a second, of large tensors
  double least_product_us = 0, least_attention_us = 0, least_reduction_us = 0, least_elementwise_us = 0;
};

struct Device {
  const char* name;  // "NVIDIA H100 SXM"
  // How the driver calls it, without the maker: alternatives between bars, "H100 80GB HBM3|H100 SXM5".
  const char* called;
  const char* source;
  int multiprocessors;  // or compute units
  int capability;       // CUDA compute capability times ten; 0 for other makers
  double bandwidth_gb;  // of the memory, 10^9 bytes a second
  double bus_gb;     // to and from the host, in each direction; of a board of its usual form, with all lanes
  double memory_gb;  // 10^9 bytes; the least that is sold under this name
  Peaks tflops;
  Reached reached = {};

  bool amd() const { return capability == 0; }
  double bytes_per_s() const { return bandwidth_gb * 1e9; }
};

// The device that the driver calls so ("NVIDIA H100 80GB HBM3", "AMD Instinct MI300X VF"). Null where the
// table has none, or where it has another number of multiprocessors than the trace says: then only a part of
// the device was visible (a MIG slice, a partition).
const Device* DeviceNamed(std::string_view name, std::optional<int64_t> multiprocessors = std::nullopt);

// The device that a user means: as the driver calls it, or by its name in the table with or without the maker,
// whatever the case ("MI300X", "h100 sxm"); else the likeliest of those that are called so with more words behind it,
// which is the first in the table ("H100": the SXM). Null where the table has none.
const Device* DeviceMeant(std::string_view name);

// In small letters: "Tesla V100-SXM2-16GB" (drivers until 2021) is "v100-sxm2-16gb", as without Tesla.
std::string WithoutMaker(std::string_view name);

// The names in the table, with commas between them.
std::string NamesOfDevices();

// As people write it: without the maker, in the table's letters ("T4", "H100 SXM").
std::string ShortName(const Device& device);
// The next step for a name that the table does not have: "did you mean 'T4'?" for "t5", and 'device=T4' where an option
// wants `before` in front; else what the devices are.
std::string HintForDevice(std::string_view name, std::string_view before = "");

// Arithmetic on elements of this type at best, operations a second: `on_tensor_cores` tells TF32 from
// float32. Nothing where the table does not say (float64, integers).
std::optional<double> MatrixPeak(const Device& device, timeline::ElementType type, bool on_tensor_cores);

// Has the device matrix units that would take float32 work if the program allowed a shorter type?
bool HasTensorCores(const Device& device);

}  // namespace fullbore::roofline
