// frozen-network: a network that no optimizer trains takes part in each step. Either gradients are computed for it, which
// nobody uses; or it runs without them, as a teacher, a target or a frozen backbone does, and that is only named.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "record/json_text.h"

namespace fullbore::diagnose {

using nlohmann::json;
using record::NumberIn;
using record::Share;

namespace {

// A fact that is an object of numbers; an empty one where it was not stated.
json NumbersOf(const View& view, const char* fact) {
  const auto text = view.Fact(fact);
  json value = text ? record::ParseJson(*text) : json::object();
  return value.is_object() ? value : json::object();
}

// The backward pass of a layer computes the gradients of its weights and of its input, each about as much work as its
// forward pass. Where nothing before the frozen network is trained, neither is needed; where something is, those of the
// weights are not.
constexpr double kWholeBackward = 0.9, kWholeBackwardAtLeast = 0.6;
constexpr double kHalfBackward = 0.5, kHalfBackwardAtLeast = 0.35;
// Called before everything that is trained, in all but this part of its time.
constexpr double kIsFirst = 0.9;

std::string NamesIn(const json& unused) {
  std::string names;
  const auto modules = unused.find("modules");
  if (modules == unused.end() || !modules->is_array()) return names;
  for (const json& module : *modules) {
    if (module.is_string()) names += (names.empty() ? "" : ", ") + module.get<std::string>();
  }
  return names;
}

// What requires_grad_(False) leaves out, where the network is called by itself: its part of the forward passes tells its
// part of the backward pass. That pass altogether is the most.
void Promise(double backward, double part, bool is_first, Finding& finding) {
  const double expected = is_first ? kWholeBackward : kHalfBackward;
  const double least = is_first ? kWholeBackwardAtLeast : kHalfBackwardAtLeast;
  finding.speedup = {1 / (1 - backward * part * expected), 1 / (1 - backward * part * least),
                     1 / (1 - std::min(backward, 0.999))};
  finding.method = fmt::format(
      "its part of the forward passes, {}, is its part of the backward pass, of which {} to all are left out",
      FormatPercent(part), FormatPercent(least));
}

// Of the backward pass, in a model that is called as a whole or in training: what its own modules compute for parameters
// that no optimizer holds, and for inputs before all that it holds, by their operations.
double PartInVain(const View& view) {
  const json flops = NumbersOf(view, "flops");
  const double backward = NumberIn(flops, "backward");
  return backward > 0 ? std::clamp(NumberIn(flops, "in_vain") / backward, 0.0, 1.0) : 0;
}

// Of the forward passes' time, at most: without gradients nothing is kept for them.
constexpr double kMostOfKeeping = 0.2;

void PromiseByOperations(const RankView& rank, double part, Finding& finding) {
  const double backward = rank.Ratio(Share::kBackward) * part;
  const double most = rank.Ratio(Share::kBackward) * std::min(1.0, part / kWholeBackward) +
                      rank.Ratio(Share::kForward) * part * kMostOfKeeping;
  const auto without = [](double saved) { return 1 / (1 - std::min(saved, 0.99)); };
  finding.speedup = {without(backward), without(backward * kWholeBackwardAtLeast), without(most)};
  finding.method = fmt::format(
      "{} of the backward pass, by the operations of the model's modules, are left out; at the low end {} of that",
      FormatPercent(part), FormatPercent(kWholeBackwardAtLeast));
}

std::optional<Finding> UnusedGradients(const View& view) {
  const RankView& rank = view.lead();
  const json unused = NumbersOf(view, "unused_gradients"), passes = NumbersOf(view, "passes");
  const double parameters = NumberIn(unused, "parameters"), used = NumberIn(unused, "used");
  if (parameters <= 0) return std::nullopt;
  const double forward_ns = NumberIn(passes, "forward_ns"), apart_ns = NumberIn(passes, "apart_ns");
  const double backward = rank.Ratio(Share::kBackward);
  const double part = forward_ns > 0 ? apart_ns / forward_ns : 0;
  const double in_vain = part > 0 || !view.ComputesOnCpu() ? 0 : PartInVain(view);
  // Where neither its passes nor its operations are seen, how much of the backward pass they take is not known.
  const double of_parameters = parameters / std::max(1.0, parameters + used);
  const double known = std::max(part, in_vain);
  const auto severity =
      SeverityOf(backward * (known > 0 ? known : of_parameters), kUnusedGradients, rank.steps);
  if (!severity) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.cause = "unused-gradients";
  finding.severity = known > 0 ? *severity : Severity::kWarning;
  finding.share = backward * known;
  const std::string names = NamesIn(unused);
  finding.title = fmt::format(
      "Gradients are computed for {} parameters that no optimizer holds{}; the backward pass takes {} of the "
      "step.",
      FormatCount(parameters), names.empty() ? "" : fmt::format(" ({})", names), FormatPercent(backward));
  finding.fix = {"requires_grad_(False) for that network: they, and what is kept for them, are left out"};
  if (part > 0) {
    const bool is_first = NumberIn(passes, "apart_first_ns") >= kIsFirst * apart_ns;
    if (is_first) finding.fix.emplace_back("or call it under torch.no_grad(): nothing before it is trained");
    Promise(backward, part, is_first, finding);
    evidence.FromHook("of the forward passes, in modules that no optimizer holds", part, "ratio");
  } else if (in_vain > 0) {
    PromiseByOperations(rank, in_vain, finding);
    evidence.FromHook("of the backward pass's operations, in vain", in_vain, "ratio");
  }
  evidence.FromHook("parameters with gradients that no optimizer holds", parameters, "count");
  if (used > 0) evidence.FromHook("parameters that the optimizers hold", used, "count");
  evidence.FromHook("backward pass", backward, "ratio");
  return finding;
}

std::optional<Finding> WithoutGradients(const View& view) {
  const json passes = NumbersOf(view, "passes");
  const double frozen_ns = NumberIn(passes, "frozen_ns");
  if (frozen_ns <= 0) return std::nullopt;
  const double frozen =
      view.lead().Ratio(Share::kForward) * frozen_ns / (frozen_ns + NumberIn(passes, "forward_ns"));
  if (frozen < kFrozenNetwork || view.lead().steps < kStepsForWarning) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.cause = "passes";
  finding.share = frozen;
  finding.title = fmt::format(
      "A network that no optimizer trains takes {} of the time, in each step (a teacher, a target, a frozen "
      "backbone): part of the training.",
      FormatPercent(frozen));
  finding.fix = {"where it is given the same inputs in every epoch: compute its outputs once and keep them"};
  evidence.FromHook("forward passes of frozen networks", frozen, "ratio");
  evidence.FromHook("all forward passes", view.lead().Ratio(Share::kForward), "ratio");
  return finding;
}

}  // namespace

std::optional<Finding> JudgeFrozenNetwork(const View& view, Diagnosis& /*diagnosis*/) {
  std::optional<Finding> finding = UnusedGradients(view);
  if (!finding) finding = WithoutGradients(view);
  return finding;
}

}  // namespace fullbore::diagnose
