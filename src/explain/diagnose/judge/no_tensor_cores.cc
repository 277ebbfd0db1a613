// no-tensor-cores: matrix products and convolutions run in full precision while the tensor cores idle. Judged
// by kernel where kernels were recorded, else from NVML's activity.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/precision_advice.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

// How much faster 16-bit precision on tensor cores makes matrix kernels. Practitioners measured 1.7 for whole
// training steps on a T4; datasheets promise 8 for the products alone, which memory bandwidth keeps real
// layers from reaching: at worst only the bytes are halved.
constexpr Speedup kKernelGain = {2.0, 1.3, 4.0};

// How much faster the step gets when `share` of it gets `gain` times faster.
double Whole(double share, double gain) { return 1 / (1 - share + share / gain); }

Finding MakeFinding(PrecisionAdvice advice, double share) {
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.share = share;
  finding.change = std::move(advice.change);
  finding.fix = std::move(advice.fix);
  finding.costs = replay::Cost::kNumerics;
  finding.speedup = {Whole(share, kKernelGain.expected), Whole(share, kKernelGain.low),
                     Whole(share, kKernelGain.high)};
  finding.method = "the matrix kernels' share of the step made 1.3 to 4 times faster";
  return finding;
}

// The part of the matrix kernels without tensor cores that would run on them in a shorter type. A depthwise
// convolution or one of a picture's three channels would not: where a trace has shapes, they tell.
double PartForTensorCores(const record::RankInfo& info) {
  if (!info.roofline) return 1;
  for (const record::RooflineClass& each : info.roofline->classes) {
    if (each.kernel_class != "matmul" || each.device_ns <= 0) continue;
    int64_t for_them_ns = each.device_ns - each.judged_ns;  // nothing is known against these
    for (const record::RooflineOperator& one : info.roofline->operators) {
      if (std::ranges::any_of(one.why, [](const record::RooflineWhy& why) {
            return why.reason == record::RooflineReason::kNoTensorCores;
          }))
        for_them_ns += one.device_ns;
    }
    return std::min(1.0, static_cast<double>(for_them_ns) / static_cast<double>(each.device_ns));
  }
  return 1;
}

std::optional<Finding> FromKernels(const View& view, PrecisionAdvice advice) {
  const RankView& rank = view.lead();
  const auto& classes = rank.info->kernel_class_ns;
  const auto of_class = [&](const char* name) {
    const auto at = classes.find(name);
    return at == classes.end() ? 0.0 : static_cast<double>(at->second);
  };
  const double plain = of_class("matmul"), tensor = of_class("matmul_tensor");
  const double compute = rank.info->compute_ns ? static_cast<double>(*rank.info->compute_ns) : 0;
  if (compute <= 0 || plain + tensor <= 0 || plain < kPlainMatmul * (plain + tensor)) return std::nullopt;
  const double share = rank.Ratio(record::Share::kCompute) * plain / compute * PartForTensorCores(*rank.info);
  if (share < kHealthy) return std::nullopt;
  Finding finding = MakeFinding(std::move(advice), share);
  Quote(rank, "precision", "the recorded steps run again with matrix kernels on tensor cores", finding);
  const EvidenceBuilder evidence(finding);
  finding.title = fmt::format("Matrix products and convolutions take {} of the step without tensor cores.",
                              FormatPercent(share));
  evidence.FromTrace("matrix kernels on tensor cores", tensor / (plain + tensor), "ratio");
  evidence.FromTrace("matrix kernels without tensor cores", plain / 1e6, "ms");
  if (rank.info->tables) {
    for (const record::KernelStats& kernel : rank.info->tables->kernels) {
      if (kernel.kernel_class != "matmul") continue;
      evidence.FromTrace("most of it in " + std::string(Utf8Front(kernel.name, 60)),
                         static_cast<double>(kernel.sum_ns) / 1e6, "ms");
      break;
    }
  }
  return finding;
}

std::optional<Finding> FromActivity(const View& view, PrecisionAdvice advice) {
  const auto tensor = view.Mean(Metric::kGpuTensorActive), sm = view.Mean(Metric::kGpuSmActive);
  if (!tensor || !sm || *tensor >= kTensorActiveNone || *sm < kDeviceStarved) return std::nullopt;
  Finding finding = MakeFinding(std::move(advice), std::min(1.0, *sm));
  const EvidenceBuilder evidence(finding);
  finding.title =
      fmt::format("The tensor cores idle ({} active) while the multiprocessors work {} of the time.",
                  FormatPercent(*tensor), FormatPercent(*sm));
  evidence.FromMetric(Metric::kGpuTensorActive, "tensor cores active", *tensor);
  evidence.FromMetric(Metric::kGpuSmActive, "multiprocessors active", *sm);
  return finding;
}

}  // namespace

// A device without such units, or one that is not known to have them, gets no advice about them. Where its activity
// could be measured it has them: NVML does so from Hopper on.
std::optional<Finding> JudgeNoTensorCores(const View& view, Diagnosis& /*diagnosis*/) {
  const bool by_kernels = view.HasSteps() && view.lead().info->device_activity;
  record::MatrixUnits units = UnitsOf(view);
  if (!by_kernels && units == record::MatrixUnits::kUnknown) units = record::MatrixUnits::kBFloat16;
  const Program program = view.ranks().empty() ? Program{} : ProgramOf(*view.lead().info);
  auto advice = PrecisionAdviceFor(program, NameOfDevice(view), units);
  if (!advice) return std::nullopt;
  return by_kernels ? FromKernels(view, std::move(*advice)) : FromActivity(view, std::move(*advice));
}

}  // namespace fullbore::diagnose
