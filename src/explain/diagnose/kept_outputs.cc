#include "explain/diagnose/kept_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/thresholds.h"
#include "record/json_text.h"

namespace fullbore::diagnose {

using nlohmann::json;
using record::NumberIn;
using record::TextIn;

namespace {

json Said(const View& view, const char* fact) {
  const auto text = view.Fact(fact);
  return text ? record::ParseJson(*text) : json();
}

std::string ShapeIn(const json& object) {
  std::string shape;
  const auto sizes = object.find("shape");
  if (sizes == object.end() || !sizes->is_array()) return shape;
  for (const json& size : *sizes) {
    if (!size.is_number()) return "";
    shape += (shape.empty() ? "" : " x ") + FormatCount(size.get<double>());
  }
  const std::string type = TextIn(object, "dtype");
  return type.empty() ? shape : fmt::format("{}, {}", shape, type);
}

const char* kOfEachPass =
    "keep what the metric needs of each pass, and not its outputs: logits.argmax(-1), the loss, or the metric's sums";
const char* kByTheTrainer =
    "Trainer(preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1)), where compute_metrics takes the "
    "best of each position alone: that is then what it is given";
const char* kBatchByBatch =
    "or TrainingArguments(batch_eval_metrics=True), with a compute_metrics that adds up batch by batch; "
    "prediction_loss_only=True, where the loss is enough";

const char* HowToKeepLess(const KeptOutputs& kept) {
  return kept.by == "transformers" ? kByTheTrainer : kOfEachPass;
}

// "the outputs of all 16 passes until it is over (131 MB)"
std::string WhatIsKept(const KeptOutputs& kept) {
  return fmt::format("the outputs of all {} passes until it is over ({})", FormatCount(kept.passes),
                     FormatBytes(kept.bytes));
}

// Of the time that keeping takes, what a metric of each pass takes in its place is not known. Nothing of what follows the
// passes is left at best.
constexpr double kSaved = 0.9, kSavedAtLeast = 0.5;

void Promise(const KeptOutputs& kept, double validation, Finding& finding) {
  const double growing = validation * kept.growing, most = validation * (kept.between + kept.after);
  const auto without = [](double saved) { return 1 / (1 - std::min(saved, 0.99)); };
  finding.speedup = {without(growing * kSaved), without(growing * kSavedAtLeast), without(most)};
  finding.method = fmt::format(
      "of what follows a validation's passes, {} to all of what grows with what is kept removed; at the high end all of "
      "it, and what follows the last pass",
      FormatPercent(kSavedAtLeast));
}

void AddEvidence(const KeptOutputs& kept, double validation, Finding& finding) {
  const EvidenceBuilder evidence(finding);
  evidence.FromHook("outputs kept by an evaluation, at its end", kept.bytes, "bytes");
  if (kept.on_device > 0) evidence.FromHook("of them on the device", kept.on_device, "bytes");
  if (!kept.shape.empty())
    evidence.FromHook(fmt::format("passes that return {}", kept.shape), kept.passes, "count");
  const auto add = [&](const char* what, double part) {
    if (part > 0) evidence.FromHook(what, validation * part, "ratio");
  };
  add("time after passes that grows with what is kept", kept.growing);
  add("time after the last pass of an evaluation", kept.after);
}

}  // namespace

std::optional<KeptOutputs> KeptOutputsOf(const View& view) {
  const json said = Said(view, "kept_outputs"), validations = Said(view, "validations");
  KeptOutputs kept;
  kept.bytes = NumberIn(said, "bytes");
  if (kept.bytes <= 0) return std::nullopt;
  kept.on_device = std::clamp(NumberIn(said, "on_device"), 0.0, kept.bytes);
  kept.passes = NumberIn(said, "passes");
  kept.shape = ShapeIn(said);
  kept.by = TextIn(said, "by");
  if (const double ns = NumberIn(validations, "ns"); ns > 0) {
    kept.between = std::clamp(NumberIn(validations, "between_ns") / ns, 0.0, 1.0);
    kept.growing = std::clamp(NumberIn(validations, "growing_ns") / ns, 0.0, kept.between);
    kept.after = std::max(0.0, NumberIn(validations, "after_ns") / ns);
  }
  return kept;
}

void SayWhatIsKept(const View& view, Finding& finding) {
  const auto kept = KeptOutputsOf(view);
  if (!kept) return;
  const double validation = view.lead().Ratio(record::HostOther::kValidation);
  const double growing = validation * kept->growing;
  AddEvidence(*kept, validation, finding);
  if (growing < kHostOther.warning) {
    ReplaceFullStop(finding.title, fmt::format("; it keeps {}.", WhatIsKept(*kept)));
    finding.fix.insert(finding.fix.begin() + (finding.fix.empty() ? 0 : 1), HowToKeepLess(*kept));
    return;
  }
  finding.cause = "kept-outputs";
  ReplaceFullStop(finding.title,
                  fmt::format("; {} goes into keeping {}.", FormatPercent(growing), WhatIsKept(*kept)));
  std::vector<std::string> fix = {HowToKeepLess(*kept)};
  if (kept->by == "transformers") fix.emplace_back(kBatchByBatch);
  if (!finding.fix.empty())
    fix.push_back(fmt::format("or {} ({:.2f}x)", finding.fix.front(), finding.speedup.expected));
  finding.fix = std::move(fix);
  Promise(*kept, validation, finding);
}

void AdviseToKeepLess(const View& view, bool on_device, std::optional<double> capacity, Finding& finding) {
  const auto kept = KeptOutputsOf(view);
  if (!kept || !capacity) return;
  const double bytes = on_device ? kept->on_device : kept->bytes - kept->on_device;
  if (bytes < kKeptOfMemory * *capacity) return;
  const EvidenceBuilder evidence(finding);
  evidence.FromHook("outputs kept there by an evaluation, at its end", bytes, "bytes");
  finding.fix.insert(finding.fix.begin(),
                     fmt::format("an evaluation keeps {}: {}", WhatIsKept(*kept), HowToKeepLess(*kept)));
  if (on_device && kept->by == "transformers")
    finding.fix.insert(
        finding.fix.begin() + 1,
        "or TrainingArguments(eval_accumulation_steps=...): they move to the host every so many passes");
}

}  // namespace fullbore::diagnose
