#include "explain/diagnose/precision_advice.h"

#include <fmt/format.h>

#include "explain/roofline/matrix_units.h"

namespace fullbore::diagnose {
namespace {

using record::MatrixUnits;

constexpr char kTf32[] =
    "at least allow TF32 in matrix products, as it is in convolutions: "
    "torch.set_float32_matmul_precision(\"high\")";

bool Has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

}  // namespace

std::string NameOfDevice(const View& view) {
  const auto& machine = view.recording().machine;
  auto name = machine.find(fmt::format("gpu{}", view.ranks().empty() ? 0 : view.lead().info->rank));
  if (name == machine.end()) name = machine.find("gpu0");
  return name == machine.end() ? "" : name->second;
}

MatrixUnits UnitsOf(const View& view) {
  const std::string name = NameOfDevice(view);
  if (view.ranks().empty() || !view.lead().info->tables) return roofline::UnitsOfDevice(name);
  return roofline::MatrixUnitsOf(name, view.lead().info->tables->kernels);
}

std::optional<PrecisionAdvice> PrecisionAdviceFor(const Program& program, std::string_view device,
                                                  MatrixUnits units) {
  if (units == MatrixUnits::kUnknown || units == MatrixUnits::kNone) return std::nullopt;
  const bool intel = Has(device, "Intel"), amd = Has(device, "AMD") || Has(device, "Instinct");
  const bool float16 = units == MatrixUnits::kFloat16;
  PrecisionAdvice advice;
  advice.change = ToUseShortType(program, float16 ? "float16" : "bfloat16", intel ? "xpu" : "cuda");
  const std::string what = program.torch() ? "run the forward pass under " + advice.change : advice.change;
  const std::string name = device.empty() ? "device" : std::string(device);
  if (float16)
    advice.fix.push_back(
        fmt::format("{}: the {} has tensor cores for float16, but not for bfloat16 or TF32 (compute "
                    "capability below 8.0)",
                    what, name));
  else if (amd || intel)
    advice.fix.push_back(fmt::format("{}: the {} has matrix cores for it", what, name));
  else
    advice.fix.push_back(what);
  if (!float16 && !amd && !intel && program.torch()) advice.fix.emplace_back(kTf32);
  advice.fix.emplace_back(program.torch()
                              ? "channels_last for convolutions; layer sizes that are multiples of 8"
                              : "layer sizes that are multiples of 8");
  return advice;
}

}  // namespace fullbore::diagnose
