#include "explain/diagnose/judge/fp8_overhead.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/program.h"
#include "explain/diagnose/thresholds.h"
#include "explain/roofline/devices.h"

namespace fullbore::diagnose {

using record::KernelStats;
using record::Roofline;
using record::RooflineOperator;

namespace {

// A kernel with next to nothing to do, where nobody has published what the device's libraries need for it.
constexpr double kLeastNs = 5'000;
constexpr size_t kNamed = 3;

// All calls of one scaled product of m x k by k x n.
struct Product {
  const RooflineOperator* of = nullptr;
  double m = 0, k = 0, n = 0;
  double saves_ns = 0;     // of what it would take in 16 bits
  double prepares_ns = 0;  // casts and the search for the largest element, of its operands

  double CostsNs() const { return prepares_ns - saves_ns; }
  double Operands() const { return static_cast<double>(of->count) * (m * k + k * n); }
};

// The first two tensors of "(4, 16) x (16, 2) x (1) x (1)".
std::optional<std::array<double, 4>> FirstTwo(std::string_view shape) {
  std::array<double, 4> dims{};
  size_t found = 0;
  for (const std::string_view tensor : Split(shape, 'x')) {
    const std::string_view inside = Trim(tensor);
    if (found == dims.size()) break;
    if (inside.size() < 2 || inside.front() != '(' || inside.back() != ')') return std::nullopt;
    const auto sizes = Split(inside.substr(1, inside.size() - 2), ',');
    if (sizes.size() != 2) return std::nullopt;
    for (const std::string_view size : sizes) dims[found++] = ParseDouble(Trim(size)).value_or(0);
  }
  return found == dims.size() && dims[1] == dims[2] ? std::optional(dims) : std::nullopt;
}

// The same product at the 16-bit peak, with its operands twice as long. What it takes above the least that any kernel
// takes grows as the limit does: small products gain nothing from shorter numbers.
double In16Bits(const Roofline& roofline, double least_ns, const Product& product) {
  const auto calls = static_cast<double>(product.of->count);
  const double each_ns = static_cast<double>(product.of->device_ns) / calls;
  const double bytes = 2 * (product.m * product.k + product.k * product.n + product.m * product.n);
  const double attainable_ns =
      1e9 * std::max(*product.of->flops / roofline.peak_16bit_flops, bytes / roofline.bytes_per_s);
  const double grows = attainable_ns / (*product.of->attainable_ns / calls);
  return calls * (std::min(each_ns, least_ns) + std::max(0.0, each_ns - least_ns) * std::max(1.0, grows));
}

std::vector<Product> ScaledProducts(const Roofline& roofline) {
  const roofline::Device* device = roofline::DeviceNamed(roofline.device);
  const double known_us = device ? device->reached.least_product_us : 0;
  std::vector<Product> products;
  for (const RooflineOperator& each : roofline.operators) {
    const bool judged = each.type == "float8" && each.kind == "matrix" && each.flops && each.attainable_ns;
    const auto dims = judged ? FirstTwo(each.shape) : std::nullopt;
    if (!dims || each.count <= 0 || each.device_ns <= 0 || *each.attainable_ns <= 0) continue;
    Product product{&each, (*dims)[0], (*dims)[1], (*dims)[3]};
    product.saves_ns = In16Bits(roofline, known_us > 0 ? 1'000 * known_us : kLeastNs, product) -
                       static_cast<double>(each.device_ns);
    products.push_back(product);
  }
  return products;
}

// Whether a kernel only prepares operands: by its name in PyTorch (a cast), as torch.compile names what it fuses, in
// Transformer Engine and in kernels of their kind.
bool PreparesOperands(std::string_view name) {
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  if (has("gemm") || has("matmul") || has("_mm_kernel")) return false;
  if (has("float8_copy_kernel")) return true;
  const bool casts = has("cast") || has("quant") || has("amax") || has("transpose");
  if (has("transformer_engine::") || has("nvte_") || has("fp8") || has("float8")) return casts;
  if (!name.starts_with("triton_")) return false;
  return has("_scaled_mm") || has("amax") || (has("abs") && has("max")) ||
         (has("clamp") && has("_to_copy") && (has("mul") || has("div")));
}

// "(512, 2048)" of "(512, 2048) x (1)"
std::string_view FirstTensor(std::string_view shape) { return shape.substr(0, shape.find(')') + 1); }

// Scaling and clamping in kernels that other code has, too: as many of them as there are casts of tensors of that shape.
double ScalingNs(const Roofline& roofline) {
  std::map<std::string_view, double> casts;
  for (const RooflineOperator& each : roofline.operators) {
    if (each.kernel.find("float8_copy_kernel") != std::string::npos)
      casts[FirstTensor(each.shape)] += static_cast<double>(each.count);
  }
  double ns = 0;
  for (const RooflineOperator& each : roofline.operators) {
    const auto cast = casts.find(FirstTensor(each.shape));
    const bool scales = each.name == "aten::mul" || each.name == "aten::div" || each.name == "aten::clamp";
    if (!scales || cast == casts.end() || each.count <= 0) continue;
    ns += static_cast<double>(each.device_ns) * std::min(1.0, cast->second / static_cast<double>(each.count));
  }
  return ns;
}

// The search for the largest element, in kernels that other code has, too (an L1 loss): as many of each of its two as there
// are casts.
double SearchesNs(const std::vector<KernelStats>& kernels) {
  const auto all_of = [&](std::string_view word) {
    KernelStats sum;
    for (const KernelStats& kernel : kernels) {
      if (kernel.name.find(word) == std::string::npos) continue;
      sum.count += kernel.count;
      sum.sum_ns += kernel.sum_ns;
    }
    return sum;
  };
  const auto casts = static_cast<double>(all_of("float8_copy_kernel").count);
  double ns = 0;
  for (const KernelStats& searches : {all_of("AbsFunctor"), all_of("MaxNanFunctor")}) {
    const double part = casts / static_cast<double>(std::max<int64_t>(1, searches.count));
    ns += static_cast<double>(searches.sum_ns) * std::min(1.0, part);
  }
  return ns;
}

// Of operands that are scaled one tensor at a time, each element costs the same.
double ShareOut(const Roofline& roofline, const std::vector<KernelStats>& kernels,
                std::vector<Product>& products) {
  double ns = ScalingNs(roofline) + SearchesNs(kernels), operands = 0;
  for (const KernelStats& kernel : kernels) {
    if (PreparesOperands(kernel.name)) ns += static_cast<double>(kernel.sum_ns);
  }
  for (const Product& product : products) operands += product.Operands();
  for (Product& product : products) product.prepares_ns = ns * product.Operands() / std::max(1.0, operands);
  return ns;
}

// "(4096, 512) x (512, 1024)"
std::string NameOf(const Product& product) {
  return fmt::format("({:g}, {:g}) x ({:g}, {:g})", product.m, product.k, product.k, product.n);
}

std::string NamesOf(const std::vector<Product>& products) {
  std::vector<std::string> names;
  for (const Product& product : products) {
    if (names.size() < kNamed) names.push_back(NameOf(product));
  }
  if (products.size() > kNamed) names.push_back(fmt::format("{} more", products.size() - kNamed));
  return fmt::format("{}", fmt::join(names, ", "));
}

// A sum over the products: "4.2 ms".
std::string Together(const std::vector<Product>& products, double Product::*ns) {
  double sum_ns = 0;
  for (const Product& product : products) sum_ns += product.*ns;
  return FormatDuration(std::llround(sum_ns));
}

// Products in 16 bits that cannot be scaled ones as they are: torch._scaled_mm wants multiples of 16.
size_t Misaligned(const Roofline& roofline) {
  return static_cast<size_t>(std::ranges::count_if(roofline.operators, [](const RooflineOperator& each) {
    const bool short_type = each.type == "bfloat16" || each.type == "float16";
    const auto dims = short_type && each.kind == "matrix" ? FirstTwo(each.shape) : std::nullopt;
    return dims && std::ranges::any_of(*dims, [](double size) { return std::fmod(size, 16) != 0; });
  }));
}

std::vector<std::string> FixesOf(const std::vector<Product>& losing, bool compiled) {
  std::vector<std::string> fixes = {
      fmt::format("keep the layers of these products in 16 bits: {} (torchao: module_filter_fn of "
                  "convert_to_float8_training; Transformer Engine: fp8_autocast(enabled=False) around them)",
                  NamesOf(losing))};
  if (!compiled)
    fixes.push_back(
        "torch.compile(model): casts and the search for the largest element become a part of the kernels "
        "around them");
  fixes.push_back("more rows at once (a larger batch): what a product saves grows with its third dimension");
  return fixes;
}

// On simulated devices (tests/accuracy/test_device_fp8.py) the share is right to two points; on real ones FP8 may reach
// another part of its peak than 16 bits do, which moves what the products take and not the casts. A choice.
constexpr double kLeast = 0.7, kMost = 1.2;

Speedup GainOf(double share) {
  const auto without = [&](double part) { return 1 / (1 - std::min(part * share, kMostOfAStep)); };
  return {without(1), without(kLeast), without(kMost)};
}

void AddEvidence(const Roofline& roofline, const std::vector<Product>& products, double prepares_ns,
                 const EvidenceBuilder& evidence) {
  double products_ns = 0, in_16_bits_ns = 0;
  for (const Product& product : products) {
    products_ns += static_cast<double>(product.of->device_ns);
    in_16_bits_ns += static_cast<double>(product.of->device_ns) + product.saves_ns;
  }
  evidence.FromTrace("scaled products", products_ns / 1e6, "ms");
  evidence.FromTrace("the same products in 16 bits, by the device's peaks", in_16_bits_ns / 1e6, "ms");
  evidence.FromTrace("casts and searches for the largest element", prepares_ns / 1e6, "ms");
  if (const size_t others = Misaligned(roofline); others > 0)
    evidence.FromTrace("products in 16 bits with a dimension that is no multiple of 16",
                       static_cast<double>(others), "count");
}

}  // namespace

std::optional<Finding> FromFp8(const View& view) {
  const RankView& rank = view.lead();
  const Roofline& roofline = *rank.info->roofline;
  if (!rank.info->tables || roofline.peak_16bit_flops <= 0 || roofline.bytes_per_s <= 0) return std::nullopt;
  std::vector<Product> products = ScaledProducts(roofline);
  const double prepares_ns = ShareOut(roofline, rank.info->tables->kernels, products);
  std::vector<Product> losing = products;
  std::erase_if(losing, [](const Product& product) { return product.CostsNs() <= 0; });
  std::ranges::stable_sort(losing, std::ranges::greater(), &Product::CostsNs);
  double device_ns = 0, costs_ns = 0;
  for (const record::RooflineClass& each : roofline.classes) device_ns += static_cast<double>(each.device_ns);
  for (const Product& product : losing) costs_ns += product.CostsNs();
  const double share =
      rank.Ratio(record::Share::kCompute) * std::min(1.0, costs_ns / std::max(1.0, device_ns));
  if (losing.empty() || share < kHealthy) return std::nullopt;
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.share = share;
  finding.cause = "fp8-overhead";
  finding.title = fmt::format(
      "FP8 costs more than it saves in {} of {} scaled products, {} of the step: in the trace, preparing their "
      "operands takes {}, and in 16 bits the products would take only {} more.",
      losing.size(), products.size(), FormatPercent(share), Together(losing, &Product::prepares_ns),
      Together(losing, &Product::saves_ns));
  finding.fix = FixesOf(losing, ProgramOf(*rank.info).compiled);
  finding.speedup = GainOf(share);
  finding.method =
      "the steps without the casts of these products, and with the longer products of 16 bits, by the device's "
      "peaks";
  AddEvidence(roofline, products, prepares_ns, EvidenceBuilder(finding));
  return finding;
}

}  // namespace fullbore::diagnose
