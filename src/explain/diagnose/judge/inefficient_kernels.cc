// inefficient-kernels: the device works, but far below what it could do for the shapes that it is given. Judged
// where a trace has shapes: by operators far from their limit, and by rows of operators that one kernel could do
// (record/roofline.h), those that a program writes out step by step even where each of them is near its limit.
// What tensor cores would bring is no-tensor-cores' to say; products in FP8 that do not pay are told in fp8_overhead.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/text.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/fp8_overhead.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/program.h"

namespace fullbore::diagnose {

using record::Roofline;
using record::RooflineChain;
using record::RooflineOperator;
using record::RooflineReason;

namespace {

constexpr char kCompile[] = "torch.compile(model)";

// Work that takes longer than it has to.
struct Excess {
  RooflineReason reason;
  std::string what, why;
  double device_ns = 0;
  std::optional<double> attainable_ns;
  bool written_out = false;  // a row of single steps of arithmetic

  double AboveNs() const { return attainable_ns ? std::max(0.0, device_ns - *attainable_ns) : device_ns; }
};

struct Cure {
  RooflineReason reason;
  const char* change;  // in code; empty where it is not one line
  const char* fix;
  bool sure = true;  // not where it depends on kernels that somebody has yet to write
};

const Cure& CureOf(RooflineReason reason) {
  static constexpr Cure kCures[] = {
      {RooflineReason::kFewTiles, "",
       "give the product more blocks: a larger batch, or its long dimension split into parts that are "
       "summed up (split-K: torch.compile(mode=\"max-autotune\") tries it)",
       false},
      {RooflineReason::kMisaligned, "",
       "pad the dimension to a multiple of 8 at 16 bits, of 4 at 32 (vocabulary, hidden sizes, channels)"},
      {RooflineReason::kThinProduct, "",
       "multiply more rows at once: a larger batch, or products side by side in one", false},
      {RooflineReason::kSmallProducts, "", "merge the small products into fewer larger ones", false},
      {RooflineReason::kNoTensorCores, "", ""},
      {RooflineReason::kFewChannels, "",
       "channels_last, 16 bits, and the picture padded to 4 or 8 channels; or pixels moved into channels "
       "(torch.nn.functional.pixel_unshuffle) and a smaller kernel",
       false},
      {RooflineReason::kDepthwise, "",
       "16 bits and channels_last: a depthwise convolution is bound by memory; or one of a few channels a "
       "group",
       false},
      {RooflineReason::kGrouped, "", "fewer groups of 16 channels or more, and channels_last", false},
      {RooflineReason::kDilated, "", "channels_last; or a pooled picture and a convolution without dilation",
       false},
      {RooflineReason::kLayout, "model.to(memory_format=torch.channels_last)",
       "model.to(memory_format=torch.channels_last), and the same for its inputs: no kernel converts them "
       "any more"},
      {RooflineReason::kAttentionUnfused, "torch.nn.functional.scaled_dot_product_attention",
       "torch.nn.functional.scaled_dot_product_attention: the scores never go through memory"},
      {RooflineReason::kAttentionSlow, "",
       "try the other kernels of attention (torch.nn.attention.sdpa_kernel), newer libraries, and heads of "
       "64 or 128",
       false},
      {RooflineReason::kNormalisationUnfused, kCompile,
       "torch.nn.functional.layer_norm or rms_norm, or torch.compile(model): one kernel for the "
       "normalisation"},
      {RooflineReason::kElementwiseChain, kCompile,
       "torch.compile(model): one kernel for the row, which reads and writes once"},
      {RooflineReason::kSmallKernels, kCompile,
       "torch.compile(model), or a CUDA graph: the small kernels become one, or follow without a launch"},
      {RooflineReason::kStrided, "",
       "keep tensors in one order: .contiguous() once, not a strided read at each use", false},
      {RooflineReason::kTiny, kCompile,
       "torch.compile(model), or larger batches: kernels with so little to do cost their start"},
      {RooflineReason::kLowBandwidth, "",
       "try torch.compile(model), which writes a kernel of its own; and look whether the memory's clock is "
       "lowered",
       false},
  };
  return *std::ranges::find(kCures, reason, &Cure::reason);
}

// Of what stands around an operator, its chain tells: it would count twice.
bool IsToldByChain(RooflineReason reason) {
  return reason == RooflineReason::kElementwiseChain || reason == RooflineReason::kNormalisationUnfused ||
         reason == RooflineReason::kAttentionUnfused || reason == RooflineReason::kSmallKernels;
}

Excess OfChain(const RooflineChain& chain) {
  constexpr size_t kNamed = 3;
  const auto named = static_cast<std::ptrdiff_t>(std::min(kNamed, chain.operators.size()));
  std::vector<std::string> names(chain.operators.begin(), chain.operators.begin() + named);
  if (chain.operators.size() > kNamed) names.emplace_back("...");
  return {chain.reason,
          fmt::format("{} {}", fmt::join(names, ", "), chain.shape),
          fmt::format("{} operators in a row over the same elements, each of which goes through memory",
                      chain.operators.size()),
          static_cast<double>(chain.device_ns),
          chain.fused_ns,
          chain.reason != RooflineReason::kSmallKernels && chain.elementary >= kStepsOfArithmetic};
}

std::vector<Excess> ExcessesOf(const Roofline& roofline) {
  std::vector<Excess> all;
  for (const RooflineChain& chain : roofline.chains) all.push_back(OfChain(chain));
  for (const RooflineOperator& one : roofline.operators) {
    const auto is = [](RooflineReason reason) {
      return [reason](const record::RooflineWhy& why) { return why.reason == reason; };
    };
    if (std::ranges::any_of(one.why, is(RooflineReason::kNoTensorCores))) continue;
    const auto why = std::ranges::find_if_not(
        one.why, [](const record::RooflineWhy& each) { return IsToldByChain(each.reason); });
    if (why != one.why.begin() || one.why.empty()) continue;
    all.push_back({why->reason, fmt::format("{} {}", one.name, one.shape), why->text,
                   static_cast<double>(one.device_ns), one.attainable_ns});
  }
  std::ranges::stable_sort(all, [](const Excess& a, const Excess& b) { return a.AboveNs() > b.AboveNs(); });
  return all;
}

// The reasons by what they cost, the dearest first.
std::vector<RooflineReason> ReasonsOf(const std::vector<Excess>& excesses) {
  std::map<RooflineReason, double> above_ns;
  for (const Excess& excess : excesses) above_ns[excess.reason] += excess.AboveNs();
  std::vector<RooflineReason> reasons;
  for (const auto& [reason, ns] : above_ns) reasons.push_back(reason);
  std::ranges::stable_sort(reasons,
                           [&](RooflineReason a, RooflineReason b) { return above_ns[a] > above_ns[b]; });
  return reasons;
}

// A program that is compiled already is not told to compile: something kept the compiler from it.
std::string FixOf(const Cure& cure, bool compiled) {
  if (!compiled || std::string_view(cure.fix).find("torch.compile") == std::string_view::npos)
    return cure.fix;
  return "see why the compiler leaves these to single kernels: TORCH_LOGS=graph_breaks,fusion python ... "
         "names where it gives up";
}

std::string TitleOf(const Excess& worst, double share, bool known, bool only_written_out) {
  if (only_written_out) {
    return fmt::format("Formulas written out step by step cost {} of the step, most of it in {}: {}.",
                       FormatPercent(share), worst.what, worst.why);
  }
  if (known) {
    return fmt::format(
        "Kernels far below what the device could do cost {} of the step, most of it in {}: {}.",
        FormatPercent(share), worst.what, worst.why);
  }
  return fmt::format("Operators whose shapes use devices badly take {} of the step, most of it {}: {}.",
                     FormatPercent(share), worst.what, worst.why);
}

std::optional<Finding> FromShapes(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const Roofline& roofline = *rank.info->roofline;
  const bool known = !roofline.device.empty();
  double device_ns = 0, above_ns = 0, curable_ns = 0, written_out_ns = 0;
  for (const record::RooflineClass& each : roofline.classes) device_ns += static_cast<double>(each.device_ns);
  std::vector<Excess> excesses = ExcessesOf(roofline);
  for (const Excess& excess : excesses) {
    above_ns += excess.AboveNs();
    if (CureOf(excess.reason).sure) curable_ns += excess.AboveNs();
    if (excess.written_out) written_out_ns += excess.AboveNs();
  }
  if (device_ns <= 0 || excesses.empty()) return std::nullopt;
  const auto share_of = [&](double ns) {
    return rank.Ratio(record::Share::kCompute) * std::min(1.0, ns / device_ns);
  };
  double share = share_of(above_ns);
  const bool worth_a_word = (known && share_of(curable_ns) >= kExcess.warning) || share >= kBadShapes;
  // Less than that, and yet sure: fusing such a row saves what lies between, whatever its kernels reach.
  const bool only_written_out = !worth_a_word && known && share_of(written_out_ns) >= kWrittenOut;
  if (!worth_a_word && !only_written_out) return std::nullopt;
  if (only_written_out) {
    std::erase_if(excesses, [](const Excess& excess) { return !excess.written_out; });
    share = share_of(written_out_ns);
  }
  const std::vector<RooflineReason> reasons = ReasonsOf(excesses);
  const Cure& cure = CureOf(reasons.front());
  // A compiler fuses more than what the shapes show to be a row: what it saves is the cost.
  const bool compiled = ProgramOf(*rank.info).compiled;
  const bool compiles = std::string_view(cure.change) == kCompile && !compiled;
  if (compiles) share = std::max(share, SavedBy(rank, "compile"));
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.share = share;
  finding.severity = known && share >= kExcess.critical && rank.steps >= kStepsForCritical
                         ? Severity::kCritical
                         : Severity::kWarning;
  finding.cause = Name(reasons.front());
  const auto worst = std::ranges::find(excesses, reasons.front(), &Excess::reason);
  finding.title = TitleOf(*worst, share, known, only_written_out);
  constexpr size_t kListed = 3;
  for (size_t i = 0; i < std::min(kListed, excesses.size()); ++i) {
    evidence.FromTrace(fmt::format("{} of {}: {}", known ? "above the attainable" : "device time",
                                   excesses[i].what, excesses[i].why),
                       excesses[i].AboveNs() / 1e6, "ms");
  }
  if (roofline.steps && roofline.steps->floor_ns && roofline.steps->device_ns > 0) {
    evidence.FromTrace("of what the device could do, all kernels together",
                       *roofline.steps->floor_ns / static_cast<double>(roofline.steps->device_ns), "ratio");
  }
  if (compiles || std::string_view(cure.change) != kCompile) finding.change = cure.change;
  for (size_t i = 0; i < std::min(kListed, reasons.size()); ++i) {
    std::string fix = FixOf(CureOf(reasons[i]), compiled);
    if (std::ranges::find(finding.fix, fix) == finding.fix.end()) finding.fix.push_back(std::move(fix));
  }
  // No other cure has been applied and measured: no gain is promised for it.
  if (compiles) AdviseBest(rank, {"compile"}, finding);
  if (!known) {
    diagnosis.not_judged.push_back({"what the shapes cost",
                                    "the trace does not name its device, or it is not in the "
                                    "table of devices",
                                    "a trace with deviceProperties (PyTorch 1.10 and newer)"});
  }
  return finding;
}

// Casts that are written out are rows of operators, too, and the excess of other kernels is no gain: half as much of FP8's
// price is told first.
constexpr double kNextToOthers = 0.5;

}  // namespace

std::optional<Finding> JudgeInefficientKernels(const View& view, Diagnosis& diagnosis) {
  const record::RankInfo& rank = *view.lead().info;
  if (!rank.roofline || !rank.device_activity) return std::nullopt;
  auto fp8 = FromFp8(view), shapes = FromShapes(view, diagnosis);
  if (!fp8 || !shapes) return fp8 ? fp8 : shapes;
  return fp8->share >= kNextToOthers * shapes->share ? fp8 : shapes;
}

}  // namespace fullbore::diagnose
