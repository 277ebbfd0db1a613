#include "explain/diagnose/precision_advice.h"

#include <fmt/format.h>

namespace fullbore::diagnose {
namespace {

constexpr char kBfloat16[] = "torch.autocast(\"cuda\", torch.bfloat16)";
constexpr char kFloat16[] = "torch.autocast(\"cuda\", torch.float16) with a GradScaler";
constexpr char kTf32[] =
    "at least allow TF32 in matrix products, as it is in convolutions: "
    "torch.set_float32_matmul_precision(\"high\")";
constexpr char kShapes[] = "channels_last for convolutions; layer sizes that are multiples of 8";

}  // namespace

const roofline::Device* DeviceOf(const View& view) {
  if (view.ranks().empty()) return nullptr;
  const auto& machine = view.recording().machine;
  auto name = machine.find(fmt::format("gpu{}", view.lead().info->rank));
  if (name == machine.end()) name = machine.find("gpu0");
  return name == machine.end() ? nullptr : roofline::DeviceNamed(name->second);
}

PrecisionAdvice PrecisionAdviceFor(const roofline::Device* device) {
  if (device == nullptr) {
    return {kBfloat16,
            {"run the forward pass under torch.autocast(\"cuda\", torch.bfloat16); on NVIDIA devices before "
             "compute capability 8.0 (V100, T4) torch.float16, with a GradScaler",
             std::string("on NVIDIA devices from 8.0 on ") + kTf32, kShapes}};
  }
  if (device->amd()) {
    return {kBfloat16,
            {fmt::format("run the forward pass under {}: the {} has matrix cores for it", kBfloat16,
                         device->name),
             kShapes}};
  }
  if (device->tflops.bf16 <= 0) {
    return {
        kFloat16,
        {fmt::format("run the forward pass under {}: the {} (compute capability {}.{}) has tensor cores for "
                     "float16, but not for bfloat16 or TF32",
                     kFloat16, device->name, device->capability / 10, device->capability % 10),
         kShapes}};
  }
  return {kBfloat16, {fmt::format("run the forward pass under {}", kBfloat16), kTf32, kShapes}};
}

}  // namespace fullbore::diagnose
