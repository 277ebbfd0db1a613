#include "explain/diagnose/model_flops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "explain/diagnose/tokens.h"
#include "explain/roofline/devices.h"
#include "record/json_text.h"

namespace fullbore::diagnose {

using nlohmann::json;
using record::NumberIn;
using record::TextIn;
using timeline::ElementType;

namespace {

constexpr size_t kMostNames = 3;
constexpr std::array kTypes = {ElementType::kBFloat16, ElementType::kFloat16, ElementType::kFloat32,
                               ElementType::kFloat64};

json Said(const View& view) {
  const auto text = view.Fact("flops");
  return text ? record::ParseJson(*text) : json();
}

// Of an average batch of the steady state, with all that is computed again.
double ComputedInAStep(const json& said, const View& view) {
  const double step = NumberIn(said, "step"), width = NumberIn(said, "width");
  const auto tokens = SampleTokensOf(view);
  if (width <= 0 || !tokens || tokens->squares <= 0) return step;
  const double of_tokens = NumberIn(said, "of_tokens"), of_squares = NumberIn(said, "of_squares");
  const double others = step - of_tokens - of_squares;
  return others + of_tokens * tokens->computed / width + of_squares * tokens->squares / (width * width);
}

// Computed again is a part of the whole, as wide as the batches are.
double OfAStep(const json& said, const View& view) {
  const double again = std::clamp(NumberIn(said, "again") / NumberIn(said, "step"), 0.0, 1.0);
  return ComputedInAStep(said, view) * (1 - again);
}

std::vector<std::string> Names(const json& said) {
  std::vector<std::string> names;
  const auto unknown = said.find("unknown");
  if (unknown == said.end() || !unknown->is_array()) return names;
  for (const json& name : *unknown) {
    if (name.is_string() && names.size() < kMostNames) names.push_back(name.get<std::string>());
  }
  return names;
}

// "cuda:0 (NVIDIA H100 80GB HBM3)", as PyTorch calls it: a part of a device has another name.
const roofline::Device* DeviceOf(const View& view) {
  const std::string device = view.Fact("device").value_or("");
  const size_t begin = device.find('('), end = device.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return nullptr;
  return roofline::DeviceNamed(device.substr(begin + 1, end - begin - 1));
}

struct Peak {
  double flops_per_s = 0;
  std::string name;
};

// Of the type that the products were seen to be computed in, else of the one that the model has.
std::optional<Peak> PeakOf(const json& said, const View& view) {
  const roofline::Device* device = DeviceOf(view);
  const std::string seen = TextIn(said, "type");
  const std::string precision = seen.empty() ? view.Fact("precision").value_or("") : seen;
  const bool tf32 = view.Fact("tf32_matmul") == "true";
  for (const ElementType type : kTypes) {
    if (device == nullptr || timeline::Name(type) != precision) continue;
    const bool shortened = type == ElementType::kFloat32 && tf32 && device->tflops.tf32 > 0;
    const auto peak = roofline::MatrixPeak(*device, type, type != ElementType::kFloat32 || shortened);
    if (!peak || *peak <= 0) return std::nullopt;
    return Peak{*peak, fmt::format("{} in {}", roofline::ShortName(*device), shortened ? "TF32" : precision)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ModelFlops> ModelFlopsOf(const View& view, double steps_per_s) {
  const json said = Said(view);
  if (!said.is_object() || NumberIn(said, "step") <= 0) return std::nullopt;
  ModelFlops flops;
  flops.per_s = OfAStep(said, view) * steps_per_s;
  flops.unknown = Names(said);
  if (flops.per_s <= 0) return std::nullopt;
  if (const auto peak = PeakOf(said, view); peak && flops.unknown.empty()) {
    flops.mfu = flops.per_s / peak->flops_per_s;
    flops.peak = peak->name;
  }
  return flops;
}

std::string WhyNoModelFlops(const View& view) {
  const json said = Said(view);
  return said.is_object() ? TextIn(said, "why") : "";
}

}  // namespace fullbore::diagnose
