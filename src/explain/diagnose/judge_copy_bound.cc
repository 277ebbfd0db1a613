// copy-bound: copies between host and device that no computation hides.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Share;

namespace {

// By time, not by count: every program makes some small pageable copies (scalars, indices).
bool CopiesArePageable(const record::RankInfo& info) {
  if (!info.tables) return false;
  int64_t pageable_ns = 0, pinned_ns = 0;
  for (const record::CopyStats& copy : info.tables->copies) {
    if (copy.kind == "copy_h2d_pageable") pageable_ns += copy.exposed_ns;
    if (copy.kind == "copy_h2d_pinned") pinned_ns += copy.exposed_ns;
  }
  return pageable_ns > pinned_ns;
}

}  // namespace

std::optional<Finding> JudgeCopyBound(const View& view, Diagnosis& /*diagnosis*/) {
  const RankView& rank = view.lead();
  const Share kind = rank.info->device_activity ? Share::kCopyExposed : Share::kH2d;
  const double share = rank.Ratio(kind);
  const auto severity = SeverityOf(share, kCopyExposed, Observations(rank));
  if (!severity) return std::nullopt;
  const record::Loader* loader = rank.TrainingLoader();
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = *severity;
  finding.share = share;
  const bool staged = loader && loader->library == record::kFullboreData;
  const bool pageable = loader && !staged ? !loader->pin_memory : CopiesArePageable(*rank.info);
  finding.title = fmt::format("Exposed copies between host and device take {} of the step{}.",
                              FormatPercent(share), pageable ? ", from pageable memory" : "");
  if (staged) {
    finding.change = fmt::format("{}(device=\"cuda\")", loader->dataset);
    finding.fix = {
        finding.change +
        ": the loader copies each batch from pinned memory on a side stream, ahead of the training"};
  } else {
    if (pageable) finding.change = "DataLoader(pin_memory=True)";
    finding.fix = {
        "DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True): the copy overlaps with "
        "compute"};
  }
  finding.fix.insert(finding.fix.end(), {"copy the next batch on a side stream while this one is computed",
                                         "send uint8 and convert on the device: a quarter of the bytes"});
  finding.where = view.HottestLines(kind);
  evidence.FromSteps(rank, "exposed copies", share, "ratio");
  finding.speedup = RemovalOf(share, 0.5);
  finding.method = "the exposed copies hidden; at the low end, half of them";
  PointAtWorstStep(rank, kind, finding);
  return finding;
}

}  // namespace fullbore::diagnose
