// needless-work: operators on the CPU do what the model does not need: passes over whole tables or tensors of which a
// step uses parts, double precision, copies that only change a layout, numbers too small to be computed quickly.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "explain/diagnose/advice.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "record/json_text.h"

namespace fullbore::diagnose {

using nlohmann::json;
using record::HostWork;

namespace {

// Of the steps that were looked at, and not more than of the run's: it may wait more than they did.
double ShareOf(const View& view, const HostWork& work, int64_t ns) {
  if (work.stepped_ns <= 0 || work.steps <= 0) return 0;
  const double of_window = static_cast<double>(ns) / static_cast<double>(work.stepped_ns);
  const double step_ns = view.lead().MeanStepNs();
  const double of_run = step_ns > 0 ? static_cast<double>(ns) / static_cast<double>(work.steps) / step_ns : 1;
  return std::clamp(std::min(of_window, of_run), 0.0, 1.0);
}

// What is said of a few steps is no accident where the operators of each are the same; the share is theirs.
std::optional<Finding> FindingOf(const View& view, const HostWork& work, int64_t ns, const Levels& levels) {
  const double share = ShareOf(view, work, ns);
  const auto severity = SeverityOf(share, levels, view.lead().steps);
  if (!severity) return std::nullopt;
  Finding finding;
  finding.severity = *severity;
  finding.share = share;
  return finding;
}

// How well one step tells what operators take of all steps. In four recordings of two programs with a large table,
// the share in windows of one to three steps was 0.06 too large to 0.15 too small (docs/accuracy.md).
constexpr double kKnownByOneStep = 0.15;

// What goes away altogether, or as much of it as `least`.
Speedup Without(const HostWork& work, double share, double least) {
  const double apart = kKnownByOneStep / std::sqrt(static_cast<double>(std::max<int64_t>(1, work.steps)));
  Speedup gain = RemovalOf(share, least);
  gain.low = RemovalOf(std::max(0.0, share - apart), least).low;
  gain.high = RemovalOf(share + std::min(apart, (1 - share) / 2)).high;
  return gain;
}

// ---- Tables ----

// What a row costs that is looked up and updated on its own, in rows of one pass over the table.
constexpr double kCostOfSparseRow = 10;

std::string SizeOf(const HostWork::Table& table) {
  return fmt::format("{} x {}", FormatCount(static_cast<double>(table.rows)),
                     FormatCount(static_cast<double>(table.columns)));
}

bool IsHardlyTouched(const HostWork::Table& table) {
  return table.used <= kTouchedOfTable * static_cast<double>(table.rows);
}

// The optimizers of torch.optim that take sparse gradients as they are.
bool TakesSparse(const std::string& optimizer) {
  return optimizer == "SGD" || optimizer == "Adagrad" || optimizer == "SparseAdam";
}

void AdviseSparse(const View& view, const HostWork::Table& table, Finding& finding) {
  const std::string optimizer = view.Fact("optimizer").value_or("");
  finding.change = fmt::format("Embedding({}, {}, sparse=True)", table.rows, table.columns);
  const std::string sparse = fmt::format(
      "nn.{} (EmbeddingBag and functional.embedding have the same switch), so that gradient and update are "
      "of the rows that were used",
      finding.change);
  if (TakesSparse(optimizer)) {
    finding.fix = {fmt::format("{}: {} takes such gradients", sparse, optimizer)};
  } else {
    finding.fix = {
        fmt::format("{}, with an optimizer of its own for this table that takes such gradients: "
                    "torch.optim.SparseAdam, SGD or Adagrad; {} keeps the rest",
                    sparse, optimizer.empty() ? "the present one" : optimizer)};
  }
  finding.fix.emplace_back(
      "a smaller table: drop rows that hardly occur, or let several share one (hashing)");
}

std::optional<Finding> DenseGradients(const View& view, const HostWork& work) {
  HostWork::Table all;
  const HostWork::Table* most = nullptr;
  for (const HostWork::Table& table : work.tables) {
    if (!IsHardlyTouched(table)) continue;
    if (most == nullptr) most = &table;
    all.rows += table.rows;
    all.used += table.used;
    all.ns += table.ns;
  }
  auto finding = FindingOf(view, work, all.ns, kNeedlessWork);
  if (!finding || most == nullptr) return std::nullopt;
  const EvidenceBuilder evidence(*finding);
  finding->cause = "dense-gradient";
  finding->title = fmt::format(
      "{} of the step goes over all rows of a table of {}, of which a step uses {}: gradient and update are "
      "dense.",
      FormatPercent(finding->share), SizeOf(*most), FormatCount(most->used));
  evidence.FromTrace("passes over the whole table", finding->share, "ratio");
  evidence.FromTrace("rows of the table", static_cast<double>(most->rows), "count");
  evidence.FromTrace("rows that a step uses, at most", most->used, "count");
  AdviseSparse(view, *most, *finding);
  finding->costs = replay::Cost::kNumerics;  // rows that are not used keep their momentum
  finding->speedup =
      Without(work, finding->share, 1 - kCostOfSparseRow * all.used / static_cast<double>(all.rows));
  finding->method = "passes over the whole table removed, but for the rows that are used";
  return finding;
}

// ---- Parts ----

struct PartAdvice {
  const char* what;
  const char* fix;
};

PartAdvice AdviceFor(const HostWork::Parts& parts) {
  if (parts.node.find("CopySlices") != std::string::npos) {
    return {"written one by one",
            "collect the parts in a list and make the tensor once: torch.stack(parts, dim) or torch.cat, in "
            "place of out[:, i] = part"};
  }
  return {"taken one by one",
          "take a tensor apart once, before the loop: for part in x.unbind(1), or x.split(...), in place of "
          "x[:, i]"};
}

std::optional<Finding> PartByPart(const View& view, const HostWork& work) {
  if (work.parts.empty()) return std::nullopt;
  int64_t ns = 0, count = 0;
  for (const HostWork::Parts& parts : work.parts) ns += parts.ns, count += parts.count;
  auto finding = FindingOf(view, work, ns, kNeedlessWork);
  if (!finding) return std::nullopt;
  const EvidenceBuilder evidence(*finding);
  const HostWork::Parts& most = work.parts.front();
  const double passes = static_cast<double>(most.count) / static_cast<double>(work.steps);
  finding->cause = "part-by-part";
  finding->title = fmt::format(
      "{} of the step is the backward pass of parts of a tensor that are {}: {} passes over all of its {} "
      "elements.",
      FormatPercent(finding->share), AdviceFor(most).what, FormatCount(passes),
      FormatCount(static_cast<double>(most.elements)));
  evidence.FromTrace("backward pass of parts", finding->share, "ratio");
  evidence.FromTrace(most.node + " in a step", passes, "count");
  evidence.FromTrace("elements of the whole tensor", static_cast<double>(most.elements), "count");
  for (const HostWork::Parts& parts : work.parts) {
    const std::string fix = AdviceFor(parts).fix;
    if (std::ranges::find(finding->fix, fix) == finding->fix.end()) finding->fix.push_back(fix);
  }
  finding->where = view.HottestLines(record::Share::kForward);
  // One pass and its copy are left of each loop.
  const double left = 2 * static_cast<double>(work.parts.size() * static_cast<size_t>(work.steps));
  finding->speedup = Without(work, finding->share, 1 - std::min(0.5, 2 * left / static_cast<double>(count)));
  finding->method = "all but one of the passes over the whole tensor removed";
  return finding;
}

// ---- Precision ----

std::optional<Finding> DoublePrecision(const View& view, const HostWork& work) {
  auto finding = FindingOf(view, work, work.float64_ns, kDoublePrecision);
  if (!finding) return std::nullopt;
  const EvidenceBuilder evidence(*finding);
  const double share = finding->share;
  const bool parameters = view.Fact("parameter_dtype").value_or("float64") == "float64";
  finding->cause = "double-precision";
  finding->title = fmt::format(
      "{} of the step computes in double precision (float64){}; float32 moves half the bytes and computes "
      "twice as many numbers at a time.",
      FormatPercent(share), parameters ? "" : ", although the parameters are not");
  evidence.FromTrace("operators on float64", share, "ratio");
  finding->fix = {
      parameters
          ? "unless double precision is wanted: data and model in float32. NumPy's default is float64: "
            "array.astype(numpy.float32) in the dataset, no model.double(), no set_default_dtype(float64)"
          : "unless double precision is wanted: what enters from NumPy as float64 makes all that it meets "
            "float64: array.astype(numpy.float32), or tensor.float() where it enters"};
  finding->costs = replay::Cost::kNumerics;
  const auto without = [&](double part) { return 1 / (1 - std::min(share * part, 0.99)); };
  finding->speedup = {without(kSavedByFloat32), without(kLeastSavedByFloat32), without(kMostSavedByFloat32)};
  finding->method = fmt::format("half of the time of operators on float64 removed ({} to {})",
                                FormatPercent(kLeastSavedByFloat32), FormatPercent(kMostSavedByFloat32));
  return finding;
}

// ---- Layout ----

// No gain is predicted: some of the copies are what the next operator would do itself.
std::optional<Finding> LayoutCopies(const View& view, const HostWork& work) {
  auto finding = FindingOf(view, work, work.relaid_ns, kRelaid);
  if (!finding) return std::nullopt;
  const EvidenceBuilder evidence(*finding);
  const double count =
      static_cast<double>(work.relaid) / static_cast<double>(std::max<int64_t>(1, work.steps));
  finding->severity = Severity::kWarning;
  finding->cause = "layout-copies";
  finding->title =
      fmt::format("{} of the step copies tensors only to change the order of their elements: {} copies.",
                  FormatPercent(finding->share), FormatCount(count));
  evidence.FromTrace("copies between layouts", finding->share, "ratio");
  evidence.FromTrace("of them in a step", count, "count");
  finding->fix = {
      "keep one layout from the dataset to the loss: permute() with contiguous() once, in the dataset, or "
      "model.to(memory_format=torch.channels_last) with inputs of the same format",
      "--windows 4@100 --keep-windows keeps a trace, whose aten::copy_ say where they come from"};
  return finding;
}

// ---- Denormals ----

struct Denormals {
  double ratio = 0, ns = 0;  // of the numbers; what a pass over all of them takes longer
  double product = 1;        // how many times as long a product of matrices takes
};

Denormals DenormalsIn(const json& said, const char* where) {
  const auto found = said.find(where);
  if (found == said.end() || !found->is_object()) return {};
  const auto number = [&](const char* key) { return record::NumberIn(*found, key); };
  return {number("ratio"), number("ns"), std::max(1.0, number("product"))};
}

// A hundredth of the weights, whose products take so many times as long, is felt in every pass: how much is not known, as
// nobody knows how often each is multiplied.
constexpr double kSlowWeights = 0.01, kSlowProduct = 3, kVerySlowProduct = 10;

// Each of these numbers is computed with at least once in a step; how many they are is reckoned up from pieces of the
// tensors. A product of matrices meets them many times; the most is what is computed with them altogether.
std::optional<Finding> SlowNumbers(const View& view, const HostWork& /*work*/) {
  const auto text = view.Fact("denormals");
  const json said = text ? record::ParseJson(*text) : json::object();
  if (!said.is_object()) return std::nullopt;
  const Denormals parameters = DenormalsIn(said, "parameters"), gradients = DenormalsIn(said, "gradients"),
                  state = DenormalsIn(said, "state");
  const RankView& rank = view.lead();
  double meets = rank.Ratio(record::Share::kOptimizer);
  if (parameters.ratio > 0 || gradients.ratio > 0)
    meets += rank.Ratio(record::Share::kForward) + rank.Ratio(record::Share::kBackward);
  // Measured on one thread.
  const double threads = ParseDouble(view.Fact("torch_threads").value_or("")).value_or(1);
  const double pass_ns = (parameters.ns + gradients.ns + state.ns) / std::max(1.0, threads);
  const double pass = pass_ns / std::max(1.0, rank.MeanStepNs());
  const double sure = std::min(pass, meets);
  auto severity = SeverityOf(sure, kNeedlessWork, rank.steps);
  const bool multiplied = parameters.ratio >= kSlowWeights && parameters.product >= kSlowProduct;
  if (multiplied && rank.steps >= kStepsForWarning) {
    const bool much = parameters.product >= kVerySlowProduct && rank.steps >= kStepsForCritical;
    severity = much ? Severity::kCritical : severity.value_or(Severity::kWarning);
  }
  if (!severity) return std::nullopt;
  Finding finding;
  finding.severity = *severity;
  finding.share = sure;
  finding.cause = "denormals";
  const std::pair<const char*, double> most =
      std::max({std::pair("the parameters", parameters.ratio),
                {"the gradients", gradients.ratio},
                {"the optimizer's state", state.ratio}},
               [](const auto& a, const auto& b) { return a.second < b.second; });
  finding.title = fmt::format(
      "{} of {} are numbers below 1.2e-38 (denormals), which this CPU computes slowly: {} of the step "
      "for one pass over them.",
      FormatPercent(most.second), most.first, FormatPercent(sure));
  const EvidenceBuilder evidence(finding);
  evidence.FromHook("a pass over them, beyond one over zeros", sure, "ratio");
  evidence.FromHook("denormals among parameters", parameters.ratio, "ratio");
  evidence.FromHook("denormals among gradients", gradients.ratio, "ratio");
  evidence.FromHook("denormals in the optimizer's state", state.ratio, "ratio");
  finding.change = "torch.set_flush_denormal(True)";
  finding.fix = {"torch.set_flush_denormal(True) once, before the training: they count as 0 then"};
  finding.costs = replay::Cost::kNumerics;
  finding.speedup = RemovalOf(meets, sure / std::max(sure, meets));
  finding.method = "one pass over these numbers removed, to all that is computed with them";
  if (multiplied) {
    ReplaceFullStop(
        finding.title,
        fmt::format("; a product of matrices with them takes {:.0f} times as long.", parameters.product));
    evidence.FromHook("a product with these parameters, of one with others", parameters.product, "ratio");
    DropGain(finding);
  }
  return finding;
}

}  // namespace

std::optional<Finding> JudgeNeedlessWork(const View& view, Diagnosis& /*diagnosis*/) {
  const auto& work = view.lead().info->host_work;
  if (!work) return std::nullopt;
  // Each is a share of the same steps: the severest is named, whose gain may not be known; of equals the largest gain.
  const auto weight = [](const Finding& one) { return std::pair(one.severity, one.speedup.low); };
  std::optional<Finding> finding;
  for (const auto judge : {DenseGradients, PartByPart, DoublePrecision, LayoutCopies, SlowNumbers}) {
    auto one = judge(view, *work);
    if (one && (!finding || weight(*one) > weight(*finding))) finding = std::move(one);
  }
  return finding;
}

}  // namespace fullbore::diagnose
