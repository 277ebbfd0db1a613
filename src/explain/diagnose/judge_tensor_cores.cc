// no-tensor-cores: matrix products and convolutions run in full precision while the tensor cores idle. Exact
// by kernel where kernels were recorded, from NVML's activity where they were not.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

// How much faster matrix kernels get by 16-bit precision on tensor cores. Practitioners measured 1.7 for
// whole training steps on a T4; datasheets promise 8 for the products alone, which memory bandwidth never
// lets a real layer reach: at worst the bytes halve.
constexpr Speedup kKernelGain = {2.0, 1.3, 4.0};
constexpr double kMostly = 0.5;  // of the matrix kernels' time

std::vector<std::string> Advice() {
  return {
      "run the forward pass under torch.autocast(\"cuda\", torch.bfloat16); before Ampere (compute "
      "capability 8.0) torch.float16, with a GradScaler",
      "on Ampere and newer at least allow TF32 in matrix products, as it is in convolutions: "
      "torch.set_float32_matmul_precision(\"high\")",
      "channels_last for convolutions; layer sizes that are multiples of 8"};
}

// The step when `share` of it gets `gain` times faster.
double Whole(double share, double gain) { return 1 / (1 - share + share / gain); }

Finding MakeFinding(double share) {
  Finding finding;
  finding.id = "no-tensor-cores";
  finding.severity = Severity::kWarning;
  finding.share = share;
  finding.change = "torch.autocast(\"cuda\", torch.bfloat16)";
  finding.fix = Advice();
  finding.speedup = {Whole(share, kKernelGain.expected), Whole(share, kKernelGain.low),
                     Whole(share, kKernelGain.high)};
  finding.method = "the matrix kernels' share of the step made 1.3 to 4 times faster";
  return finding;
}

void JudgeFromKernels(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const auto& classes = rank.info->kernel_class_ns;
  const auto of_class = [&](const char* name) {
    const auto at = classes.find(name);
    return at == classes.end() ? 0.0 : static_cast<double>(at->second);
  };
  const double plain = of_class("matmul"), tensor = of_class("matmul_tensor");
  const double compute = rank.info->compute_ns ? static_cast<double>(*rank.info->compute_ns) : 0;
  if (compute <= 0 || plain + tensor <= 0 || plain < kMostly * (plain + tensor)) return;
  const double share = rank.Ratio(record::Share::kCompute) * plain / compute;
  if (share < kHealthy) return;
  Finding finding = MakeFinding(share);
  finding.title = fmt::format("Matrix products and convolutions take {} of the step without tensor cores.",
                              FormatPercent(share));
  finding.evidence.push_back(
      {"matrix kernels on tensor cores", tensor / (plain + tensor), "ratio", "trace", "", {}, {}});
  finding.evidence.push_back({"matrix kernels without", plain / 1e6, "ms", "trace", "", {}, {}});
  if (rank.info->tables) {
    for (const record::KernelStats& kernel : rank.info->tables->kernels) {
      if (kernel.kernel_class != "matmul") continue;
      finding.evidence.push_back({"most of it in " + kernel.name.substr(0, 60),
                                  static_cast<double>(kernel.sum_ns) / 1e6,
                                  "ms",
                                  "trace",
                                  "",
                                  {},
                                  {}});
      break;
    }
  }
  diagnosis.findings.push_back(std::move(finding));
}

void JudgeFromActivity(const View& view, Diagnosis& diagnosis) {
  const auto tensor = view.Mean(Metric::kGpuTensorActive), sm = view.Mean(Metric::kGpuSmActive);
  if (!tensor || !sm || *tensor >= kTensorActiveNone || *sm < kDeviceStarved) return;
  Finding finding = MakeFinding(std::min(1.0, *sm));
  finding.title =
      fmt::format("The tensor cores idle ({} active) while the multiprocessors work {} of the time.",
                  FormatPercent(*tensor), FormatPercent(*sm));
  finding.evidence.push_back({"tensor cores active", *tensor, "ratio", "nvml", "gpu_tensor_active", {}, {}});
  finding.evidence.push_back({"multiprocessors active", *sm, "ratio", "nvml", "gpu_sm_active", {}, {}});
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace

void JudgeTensorCores(const View& view, Diagnosis& diagnosis) {
  if (view.HasSteps() && view.lead().info->device_activity)
    JudgeFromKernels(view, diagnosis);
  else
    JudgeFromActivity(view, diagnosis);
}

}  // namespace fullbore::diagnose
