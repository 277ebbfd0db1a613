// host-other: what the loop does besides training. The hook names checkpoints, validation and garbage
// collection; for the rest, the line sampler says where it happens.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::HostOther;
using record::Share;

namespace {

struct Advice {
  HostOther part;
  const char* cause;
  const char* does;
  std::vector<std::string> fix;
  double least;  // the least part of its share that the fix removes
};

const std::vector<Advice>& AdviceTable() {
  static const std::vector<Advice> table = {
      {HostOther::kCheckpoint,
       "checkpoint",
       "saves checkpoints",
       {"save in the background (torch.distributed.checkpoint.async_save, or a thread that writes a CPU "
        "copy), or less often",
        "save to fast local storage first and copy from there", "save only what a restart needs"},
       0.5},
      {HostOther::kValidation,
       "validation",
       "validates",
       {"validate less often, or on a fixed sample of the validation set, and on all of it at the end",
        "validate in a job of its own from the checkpoints",
        "a larger batch and torch.inference_mode() for validation"},
       0.5},
      {HostOther::kGarbageCollection,
       "garbage-collection",
       "collects garbage",
       {"gc.freeze() after start-up, gc.disable() in the loop and gc.collect() every few hundred steps",
        "find what creates so many objects: lists of tensors, per-step closures"},
       0.8},
      {HostOther::kUnnamed,
       "loop-code",
       "runs other code between the steps",
       {"log every N steps, not every step; write files and metrics from a thread",
        "move what does not need the step's result out of the loop"},
       0.5}};
  return table;
}

}  // namespace

std::optional<Finding> JudgeHostOther(const View& view, Diagnosis& /*diagnosis*/) {
  const RankView& rank = view.lead();
  const double share = rank.Ratio(Share::kHostOther);
  const auto severity = SeverityOf(share, kHostOther, rank.steps);
  if (!severity) return std::nullopt;
  const Advice* largest = &AdviceTable().back();
  for (const Advice& advice : AdviceTable()) {
    if (rank.Ratio(advice.part) > rank.Ratio(largest->part)) largest = &advice;
  }
  const double part = rank.Ratio(largest->part);
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.cause = largest->cause;
  finding.severity = *severity;
  finding.share = share;
  finding.title = fmt::format("The loop spends {} of the time on work other than training: it {} ({}).",
                              FormatPercent(share), largest->does, FormatPercent(part));
  finding.fix = largest->fix;
  finding.where = view.HottestLines(Share::kHostOther);
  if (largest->part == HostOther::kUnnamed && !finding.where.empty()) {
    const Place& place = finding.where.front();
    finding.title =
        fmt::format("The loop spends {} of the time on work other than training, most of it at {}:{}.",
                    FormatPercent(share), place.file.substr(place.file.rfind('/') + 1), place.line);
  }
  for (const Advice& advice : AdviceTable()) {
    const double ratio = rank.Ratio(advice.part);
    if (ratio <= 0) continue;
    evidence.FromHook(std::string(Name(advice.part)), ratio, "ratio");
  }
  int64_t steps_with = 0;
  for (const record::Step* step : rank.steady) {
    steps_with += step->host_other_ns[static_cast<size_t>(largest->part)] >
                  static_cast<int64_t>(kOtherInStep * static_cast<double>(step->wall_ns));
  }
  if (!rank.steady.empty()) {
    evidence.FromHook("steps in which it takes more than 5 %",
                      static_cast<double>(steps_with) / static_cast<double>(rank.steady.size()), "ratio");
  }
  if (const auto rule = DeviceAgainstCpu(view)) finding.fix.push_back(*rule);
  finding.speedup = RemovalOf(part, largest->least);
  finding.method = fmt::format("its share removed; at the low end, {} of it", FormatPercent(largest->least));
  return finding;
}

}  // namespace fullbore::diagnose
