#include "explain/roofline/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/nearest.h"
#include "base/text.h"

namespace fullbore::roofline {
namespace {

using timeline::ElementType;

// Where a data sheet gives peaks "with sparsity" only, half of them stands here. Sources by their titles:
//   sheet: the device's NVIDIA or AMD data sheet (V100: January 2020; a DGX Station's V100: its own sheet, 500
//          TFLOPS for four of them). MI250X: half of the card, whose two dies are devices of their own for PyTorch.
//   paper: NVIDIA's architecture white papers: GA102 (2021), Ada (2022), H100 (2023), and for B200 the "Blackwell
//          Architecture Technical Brief" (2024), HGX B200.
//   brief: product brief PB-11133, "NVIDIA H100 PCIe GPU".
// Buses: the same sheets name PCIe 3.0, 4.0 or 5.0, all with 16 lanes; 8, 16 and 32 GT/s a lane with 128b/130b coding
// are 15.75, 31.5 and 63 GB/s in each direction (PCI-SIG's specifications).
// What is reached, by source:
//   [M]  S. Bekman, "Machine Learning Engineering", maximum achievable matmul FLOPS: torch.matmul in bfloat16, the best
//        of many shapes, mean of 100 runs. MI250X: its 2024 edition.
//   [B]  te42kyfo/gpu-benches, gpu-stream: SCALE (a read and a write) at full occupancy.
//   [F3] J. Shah et al., "FlashAttention-3" (2024), charts of forward and backward speed: FlashAttention-2, which
//        PyTorch's flash backend is made of, with heads of 128 and 16,384 tokens on an H100 SXM.
//   [FA] ROCm/flash-attention issue 142 (2025): FlashAttention-2 with heads of 128, 16,384 tokens, on an MI300X.
//   [A]  AMD, "System Acceptance", MI300X: what rocBLAS' float32 product has to reach at least.
//   [T]  AMD-AGI/TraceLens, tests/traces, reports on programs that ran on both an H100 and an MI300X. Bandwidth:
//        aten::mul over 3.8 GB in timesformer-base. Least times: bert-small with one text of 141 tokens, means of its
//        products of 74 MFLOP, its attention, its layer norms, its additions and GELUs. The programs that
//        docs/measurements.md judges the predictions by (vit, qwen) have no part in these figures.
// Memory: the same sheets. Where a device is sold with more under the same name (V100: 32 GB), the least. MI250X: of one
// die.
// Multiprocessors and compute capabilities: the white papers and the CUDA C++ Programming Guide; AMD: the sheets.
// clang-format off
constexpr Device kDevices[] = {
    // name, how the driver calls it, source, multiprocessors, compute capability, GB/s, of the bus, GB, TFLOP/s
    {"NVIDIA V100 SXM2", "V100-SXM2-16GB|V100-SXM2-32GB|V100-DGXS-16GB|V100-DGXS-32GB", "data sheet 2020",
     80, 70, 900, 15.75, 16, {.fp32 = 15.7, .fp16 = 125}},
    {"NVIDIA V100 PCIe", "V100-PCIE-16GB|V100-PCIE-32GB", "data sheet 2020",
     80, 70, 900, 15.75, 16, {.fp32 = 14, .fp16 = 112},
     {.source = "[B]", .elementwise_gb = 788}},
    {"NVIDIA V100S PCIe", "V100S-PCIE-32GB", "data sheet 2020",
     80, 70, 1134, 15.75, 32, {.fp32 = 16.4, .fp16 = 130}},
    {"NVIDIA T4", "T4", "data sheet 2019",
     40, 75, 320, 15.75, 16, {.fp32 = 8.1, .fp16 = 65}},
    {"NVIDIA A10", "A10", "data sheet 2021",
     72, 86, 600, 31.5, 24, {.fp32 = 31.2, .tf32 = 62.5, .fp16 = 125, .bf16 = 125}},
    {"NVIDIA A10G", "A10G", "data sheet 2022",
     80, 86, 600, 31.5, 24, {.fp32 = 31.5, .tf32 = 35, .fp16 = 70, .bf16 = 70}},
    {"NVIDIA A100 SXM 80 GB", "A100-SXM4-80GB|A100-SXM-80GB", "data sheet 2021",
     108, 80, 2039, 31.5, 80, {.fp32 = 19.5, .tf32 = 156, .fp16 = 312, .bf16 = 312},
     {.source = "[M]", .product_tflops = 271.2}},
    {"NVIDIA A100 SXM 40 GB", "A100-SXM4-40GB", "data sheet 2021",
     108, 80, 1555, 31.5, 40, {.fp32 = 19.5, .tf32 = 156, .fp16 = 312, .bf16 = 312},
     {.source = "[M] [B]", .product_tflops = 271.2, .elementwise_gb = 1381}},
    {"NVIDIA A100 PCIe 40 GB", "A100-PCIE-40GB", "data sheet 2021",
     108, 80, 1555, 31.5, 40, {.fp32 = 19.5, .tf32 = 156, .fp16 = 312, .bf16 = 312},
     {.source = "[M]", .product_tflops = 252.9}},
    {"NVIDIA A100 PCIe 80 GB", "A100 80GB PCIe|A100-PCIE-80GB", "data sheet 2021",
     108, 80, 1935, 31.5, 80, {.fp32 = 19.5, .tf32 = 156, .fp16 = 312, .bf16 = 312},
     {.source = "[M]", .product_tflops = 252.9}},
    {"NVIDIA L4", "L4", "data sheet 2023",
     58, 89, 300, 31.5, 24, {.fp32 = 30.3, .tf32 = 60, .fp16 = 121, .bf16 = 121, .fp8 = 242.5}},
    {"NVIDIA L40S", "L40S", "data sheet 2023",
     142, 89, 864, 31.5, 48, {.fp32 = 91.6, .tf32 = 183, .fp16 = 362, .bf16 = 362, .fp8 = 733}},
    {"NVIDIA GeForce RTX 3090", "GeForce RTX 3090", "white paper GA102",
     82, 86, 936, 31.5, 24, {.fp32 = 35.6, .tf32 = 35.6, .fp16 = 71, .bf16 = 71}},
    {"NVIDIA GeForce RTX 4090", "GeForce RTX 4090", "white paper Ada",
     128, 89, 1008, 31.5, 24, {.fp32 = 82.6, .tf32 = 82.6, .fp16 = 165.2, .bf16 = 165.2, .fp8 = 330.3}},
    {"NVIDIA H100 SXM", "H100 80GB HBM3|H100 SXM5 80GB|H100-SXM5-80GB", "white paper H100",
     132, 90, 3352, 63, 80, {.fp32 = 66.9, .tf32 = 494.7, .fp16 = 989.4, .bf16 = 989.4, .fp8 = 1978.9},
     {.source = "[M] [F3] [T]", .product_tflops = 794.5, .attention_tflops = 370,
      .attention_backward_tflops = 322, .elementwise_gb = 2926, .least_product_us = 5.81,
      .least_attention_us = 9.35, .least_reduction_us = 3.09, .least_elementwise_us = 1.74}},
    {"NVIDIA H100 PCIe", "H100 PCIe|H100-PCIE-80GB", "white paper H100, product brief PB-11133",
     114, 90, 2039, 63, 80, {.fp32 = 51.2, .tf32 = 378, .fp16 = 756, .bf16 = 756, .fp8 = 1513}},
    {"NVIDIA H100 NVL", "H100 NVL", "data sheet 2024",
     132, 90, 3900, 63, 94, {.fp32 = 60, .tf32 = 417.5, .fp16 = 835.5, .bf16 = 835.5, .fp8 = 1670.5}},
    {"NVIDIA H200 SXM", "H200", "data sheet 2024",
     132, 90, 4800, 63, 141, {.fp32 = 67, .tf32 = 494.5, .fp16 = 989.5, .bf16 = 989.5, .fp8 = 1979},
     {.source = "[M]", .product_tflops = 794.5}},
    {"NVIDIA H200 NVL", "H200 NVL", "data sheet 2024",
     132, 90, 4800, 63, 141, {.fp32 = 60, .tf32 = 417.5, .fp16 = 835.5, .bf16 = 835.5, .fp8 = 1670.5}},
    {"NVIDIA B200", "B200", "Blackwell technical brief, HGX B200",
     148, 100, 8000, 63, 180, {.fp32 = 80, .tf32 = 1100, .fp16 = 2250, .bf16 = 2250, .fp8 = 4500},
     {.source = "[M]", .product_tflops = 1745}},
    {"AMD Instinct MI210", "MI210", "data sheet 2022",
     104, 0, 1638, 31.5, 64, {.fp32 = 22.6, .fp32_matrix = 45.3, .fp16 = 181, .bf16 = 181},
     {.source = "[B]", .elementwise_gb = 1358}},
    {"AMD Instinct MI250X (one die)", "MI250X", "data sheet 2021, half of the card",
     110, 0, 1638, 31.5, 64, {.fp32 = 23.95, .fp32_matrix = 47.85, .fp16 = 191.5, .bf16 = 191.5},
     {.source = "[M]", .product_tflops = 147}},
    {"AMD Instinct MI300X", "MI300X|MI300X VF", "data sheet 2023",
     304, 0, 5300, 63, 192, {.fp32 = 163.4, .fp32_matrix = 163.4, .tf32 = 653.7, .fp16 = 1307.4, .bf16 = 1307.4,
                    .fp8 = 2614.9},
     {.source = "[M] [A] [FA] [T]", .product_tflops = 668.4, .product_fp32_tflops = 94.1,
      .attention_tflops = 353, .attention_backward_tflops = 194, .elementwise_gb = 4138,
      .least_product_us = 5.04, .least_attention_us = 28.41, .least_reduction_us = 3.95,
      .least_elementwise_us = 2.92}},
};
// clang-format on

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool Calls(std::string_view alternatives, const std::string& name) {
  while (!alternatives.empty()) {
    const size_t bar = std::min(alternatives.find('|'), alternatives.size());
    if (Lower(alternatives.substr(0, bar)) == name) return true;
    alternatives.remove_prefix(std::min(bar + 1, alternatives.size()));
  }
  return false;
}

std::optional<double> Known(double tflops) {
  return tflops > 0 ? std::optional<double>(tflops * 1e12) : std::nullopt;
}

// Whether the words stand at the begin of the name or behind one another in it: "h100", "a100 80gb" of "a100 sxm 80
// gb".
bool IsOfKind(std::string_view words, const std::string& name) {
  std::string joined, first;
  for (const std::string_view word : Split(name, ' ')) {
    if (first.empty()) first = word;
    joined += word;
  }
  bool any = false;
  for (const std::string_view word : Split(words, ' ')) {
    if (word.empty()) continue;
    if (any ? joined.find(word) == std::string::npos : word != first) return false;
    any = true;
  }
  return any;
}

std::string LettersAndDigits(std::string_view text) {
  std::string kept;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0) kept += static_cast<char>(std::tolower(c));
  }
  return kept;
}

// "h100", "h100sxm" and "sxm" of the NVIDIA H100 SXM: people write blanks and dashes as they like.
struct Spelling {
  std::string text;
  const Device* device;
};

std::vector<Spelling> Spellings() {
  std::vector<Spelling> spellings;
  for (const Device& device : kDevices) {
    const std::string name = ShortName(device);
    spellings.push_back({LettersAndDigits(name.substr(0, name.find(' '))), &device});
    for (size_t word = 0; word != std::string::npos; word = name.find(' ', word + 1))
      spellings.push_back({LettersAndDigits(name.substr(word)), &device});
  }
  return spellings;
}

}  // namespace

// "NVIDIA A100-SXM4-40GB" (drivers since 2021), "Tesla V100-SXM2-16GB" (before): the maker says nothing more.
std::string WithoutMaker(std::string_view name) {
  std::string lower = Lower(name);
  for (const std::string_view maker : {"nvidia ", "amd ", "intel(r) ", "intel ", "tesla ", "instinct "}) {
    if (lower.starts_with(maker)) lower.erase(0, maker.size());
  }
  return lower;
}

const Device* DeviceNamed(std::string_view name, std::optional<int64_t> multiprocessors) {
  const std::string plain = WithoutMaker(name);
  for (const Device& device : kDevices) {
    if (!Calls(device.called, plain)) continue;
    return multiprocessors && *multiprocessors != device.multiprocessors ? nullptr : &device;
  }
  return nullptr;
}

const Device* DeviceMeant(std::string_view name) {
  const std::string plain = WithoutMaker(name);
  const auto* const found = std::find_if(std::begin(kDevices), std::end(kDevices), [&](const Device& device) {
    return Calls(device.called, plain) || WithoutMaker(device.name) == plain;
  });
  if (found != std::end(kDevices)) return found;
  const auto* const of_kind =
      std::find_if(std::begin(kDevices), std::end(kDevices),
                   [&](const Device& device) { return IsOfKind(plain, WithoutMaker(device.name)); });
  return of_kind == std::end(kDevices) ? nullptr : of_kind;
}

std::string NamesOfDevices() {
  std::string names;
  for (const Device& device : kDevices) names += (names.empty() ? "" : ", ") + std::string(device.name);
  return names;
}

std::string ShortName(const Device& device) {
  std::string_view name = device.name;
  for (const std::string_view maker : {"NVIDIA ", "AMD ", "Instinct "}) {
    if (name.starts_with(maker)) name.remove_prefix(maker.size());
  }
  return std::string(name);
}

std::string HintForDevice(std::string_view name, std::string_view before) {
  const std::vector<Spelling> spellings = Spellings();
  std::vector<std::string> known;
  for (const Spelling& spelling : spellings) known.push_back(spelling.text);
  const auto meant = Nearest(LettersAndDigits(WithoutMaker(name)), known);
  if (!meant) return "the devices are " + NamesOfDevices();
  const auto found = std::ranges::find(spellings, *meant, &Spelling::text);
  return fmt::format("did you mean '{}{}'?", before, ShortName(*found->device));
}

std::optional<double> MatrixPeak(const Device& device, ElementType type, bool on_tensor_cores) {
  const Peaks& peaks = device.tflops;
  switch (type) {
    case ElementType::kFloat32:
      // AMD's libraries take TF32 only on request, and their matrix cores take float32 without it.
      if (device.amd()) return Known(std::max(peaks.fp32, peaks.fp32_matrix));
      return Known(on_tensor_cores && peaks.tf32 > 0 ? peaks.tf32 : peaks.fp32);
    case ElementType::kFloat16:
      return Known(peaks.fp16);
    case ElementType::kBFloat16:
      // Without units for it, a library computes in float32.
      return Known(peaks.bf16 > 0 ? peaks.bf16 : peaks.fp32);
    case ElementType::kFloat8:
      return Known(peaks.fp8);
    default:
      return std::nullopt;
  }
}

bool HasTensorCores(const Device& device) { return device.tflops.fp16 > device.tflops.fp32; }

}  // namespace fullbore::roofline
