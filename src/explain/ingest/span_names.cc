#include "explain/ingest/span_names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace fullbore::ingest {

using timeline::SpanKind;

namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Names of ranges around one step, without case, number and separators. The first that occurs often enough is
// used.
constexpr std::array<std::string_view, 8> kStepStems = {
    "step", "trainstep", "trainingstep", "iteration", "trainiteration", "iter", "batch", "trainbatch"};

constexpr int64_t kUnnumbered = -1;  // numbered by its position once all have been read

}  // namespace

SpanKind KindOfName(std::string_view name, SpanKind otherwise) {
  if (name.starts_with("aten::")) return otherwise;
  if (name.starts_with("autograd::engine::evaluate_function")) return SpanKind::kBackward;
  if (name.starts_with("enumerate(DataLoader)") || Contains(name, "train_dataloader_next") ||
      (Contains(name, "DataLoader") && Contains(name, "__next__"))) {
    return SpanKind::kLoader;
  }
  if (name.starts_with("Optimizer.step#")) return SpanKind::kOptimizer;
  if (name.starts_with("nccl:") || name.starts_with("gloo:") || name == "record_param_comms") {
    return SpanKind::kCollectiveCall;
  }
  if (Contains(name, "save_checkpoint") || Contains(name, "checkpoint_save")) return SpanKind::kCheckpoint;
  if (Contains(name, "validation_step") || Contains(name, "run_validation") ||
      Contains(name, "evaluation_loop")) {
    return SpanKind::kValidation;
  }
  return otherwise;
}

std::optional<SpanKind> KindOfFrame(std::string_view name) {
  if (Contains(name, "dataloader.py(") && name.ends_with(": __next__")) return SpanKind::kLoader;
  if (Contains(name, "torch/serialization.py(") && name.ends_with(": save")) return SpanKind::kCheckpoint;
  if (name == "<built-in function collect>") return SpanKind::kGarbageCollection;
  if (name.starts_with('<') || name.starts_with("torch/") || name.starts_with("nn.Module") ||
      Contains(name, "site-packages/") || Contains(name, "dist-packages/")) {
    return std::nullopt;
  }
  return SpanKind::kPython;
}

void NamedSteps::Offer(std::string_view name, int64_t begin_ns, int64_t end_ns, uint16_t thread) {
  constexpr size_t kMaxName = 40;
  if (name.size() > kMaxName) return;
  std::string stem;
  std::string digits;
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isdigit(u) != 0)
      digits += c;
    else if (std::isalpha(u) != 0)
      stem += static_cast<char>(std::tolower(u));
  }
  if (std::find(kStepStems.begin(), kStepStems.end(), stem) == kStepStems.end()) return;
  by_stem_[stem].push_back({begin_ns, end_ns, ParseInt(digits).value_or(kUnnumbered), thread});
}

void NamedSteps::PutInto(timeline::DeviceTrace* trace) && {
  constexpr size_t kMinSteps = 2;
  if (!trace->steps.empty()) return;
  for (const std::string_view stem : kStepStems) {
    const auto found = by_stem_.find(std::string(stem));
    if (found == by_stem_.end() || found->second.size() < kMinSteps) continue;
    auto& marks = found->second;
    std::stable_sort(marks.begin(), marks.end(),
                     [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    for (size_t i = 0; i < marks.size(); ++i) {
      if (marks[i].number == kUnnumbered) marks[i].number = static_cast<int64_t>(i);
    }
    trace->steps = std::move(marks);
    trace->noticed.steps_by = record::StepsBy::kRanges;
    trace->notes.push_back("the profiler marks no steps: the ranges named '" + found->first +
                           "' are taken as steps");
    return;
  }
}

}  // namespace fullbore::ingest
