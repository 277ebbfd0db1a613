#include "explain/ingest/span_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>

#include "base/text.h"
#include "explain/ingest/engine_steps.h"

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
  if (const auto step = EngineStepOf(name)) {
    engine_ = step->engine;
    const bool bare = step->phase == record::ServingPhase::kUnknown && step->tokens < 0;
    (bare ? bare_ : named_).push_back({begin_ns, end_ns, 0, thread, step->phase, step->tokens});
    return;
  }
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

void NamedSteps::OfferFrame(std::string_view name, int64_t begin_ns, int64_t end_ns, uint16_t thread) {
  if (engine_.empty()) engine_ = EngineOfFrame(name);
  if (EngineStepOfFrame(name)) frames_.push_back({begin_ns, end_ns, 0, thread});
}

void NamedSteps::OfferOnDevice(std::string_view name, int64_t begin_ns, int64_t end_ns) {
  const auto step = EngineStepOf(name);
  if (!step) return;
  engine_ = step->engine;
  on_device_.push_back({begin_ns, end_ns, 0, 0, step->phase, step->tokens});
}

namespace {

// Ranges on the device as ranges of the host that launched what runs in them, where its calls were recorded: steps are
// told by launches. `marks` are in order and apart.
void MoveToTheHost(const timeline::DeviceTrace& trace, std::vector<timeline::StepMark>* marks) {
  std::unordered_map<uint32_t, const timeline::HostCall*> calls;
  for (const timeline::HostCall& call : trace.calls) {
    if (call.correlation != 0) calls.emplace(call.correlation, &call);
  }
  const std::vector<timeline::StepMark> on_device = *marks;
  std::vector<bool> moved(marks->size());
  for (const timeline::DeviceOp& op : trace.ops) {
    const auto call = calls.find(op.correlation);
    const auto after = std::ranges::partition_point(
        on_device, [&](const timeline::StepMark& mark) { return mark.begin_ns <= op.begin_ns; });
    if (call == calls.end() || after == on_device.begin() || op.begin_ns >= std::prev(after)->end_ns)
      continue;
    const auto i = static_cast<size_t>(std::prev(after) - on_device.begin());
    timeline::StepMark& mark = (*marks)[i];
    const timeline::HostCall& by = *call->second;
    mark.begin_ns = moved[i] ? std::min(mark.begin_ns, by.begin_ns) : by.begin_ns;
    mark.end_ns = moved[i] ? std::max(mark.end_ns, by.end_ns + 1) : by.end_ns + 1;
    mark.thread = by.thread;
    moved[i] = true;
  }
}

}  // namespace

// Ranges within another one are left out: an iteration counts once, also where several streams show it.
void NamedSteps::PutIterationsInto(timeline::DeviceTrace* trace) {
  constexpr size_t kMinSteps = 2;
  for (Marks* marks : {&named_, &on_device_, &bare_, &frames_}) {
    if (marks->size() < kMinSteps) continue;
    std::ranges::stable_sort(*marks, [](const auto& a, const auto& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
    });
    Marks iterations;
    for (const timeline::StepMark& mark : *marks) {
      if (!iterations.empty() && mark.begin_ns < iterations.back().end_ns) continue;
      iterations.push_back(mark);
      iterations.back().number = static_cast<int64_t>(iterations.size()) - 1;
    }
    if (marks == &on_device_) MoveToTheHost(*trace, &iterations);
    trace->steps = std::move(iterations);
    trace->notes.push_back("the steps are the iterations of " + engine_ + "'s scheduler, as it marks them");
    return;
  }
}

void NamedSteps::PutInto(timeline::DeviceTrace* trace) && {
  constexpr size_t kMinSteps = 2;
  const bool trains = std::ranges::any_of(
      trace->spans, [](const timeline::HostSpan& span) { return span.kind == SpanKind::kOptimizer; });
  if (!engine_.empty() && !trains) {
    trace->noticed.engine = engine_;
    PutIterationsInto(trace);
  }
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

namespace {

std::string MostUsedOptimizer(const timeline::DeviceTrace& trace) {
  std::map<timeline::NameId, int64_t> steps;
  for (const timeline::HostSpan& span : trace.spans) {
    if (span.kind == SpanKind::kOptimizer) ++steps[span.name];
  }
  const auto most =
      std::ranges::max_element(steps, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == steps.end()) return "";
  std::string_view name = trace.names[most->first];  // "Optimizer.step#AdamW.step"
  name.remove_prefix(std::min(name.find('#'), name.size() - 1) + 1);
  return std::string(name.substr(0, name.find('.')));
}

struct Wrapper {
  std::string_view begins, name;
};
// The ranges that each puts around its passes.
constexpr Wrapper kWrappers[] = {{"DistributedDataParallel.", "DistributedDataParallel"},
                                 {"FullyShardedDataParallel.", "FullyShardedDataParallel"},
                                 {"FSDP::", "fully_shard"},
                                 {"DeepSpeed", "DeepSpeed"}};

}  // namespace

Program ProgramIn(const timeline::DeviceTrace& trace) {
  Program program;
  program.optimizer = MostUsedOptimizer(trace);
  for (timeline::NameId id = 0; id < trace.names.size(); ++id) {
    const std::string_view name = trace.names[id];
    for (const Wrapper& wrapper : kWrappers) {
      if (name.starts_with(wrapper.begins)) program.wrapper = wrapper.name;
    }
    const bool of_inductor = name.starts_with("triton_") && Contains(name, "_fused_");
    if (of_inductor || Contains(name, "CompiledFxGraph") || Contains(name, "Torch-Compiled Region"))
      program.compiled = true;
  }
  return program;
}

}  // namespace fullbore::ingest
