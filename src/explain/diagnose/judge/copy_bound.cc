// copy-bound: copies between host and device that no computation hides.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"

namespace fullbore::diagnose {

using record::Share;

namespace {

struct ExposedCopies {
  int64_t pageable_ns = 0, pinned_ns = 0;
  double pinned_rate = 0;  // bytes/s, mean over all pinned copies to the device
};

ExposedCopies CopiesToDevice(const record::RankInfo& info) {
  ExposedCopies copies;
  if (!info.tables) return copies;
  for (const record::CopyStats& copy : info.tables->copies) {
    if (copy.kind == "copy_h2d_pageable") copies.pageable_ns += copy.exposed_ns;
    if (copy.kind != "copy_h2d_pinned") continue;
    copies.pinned_ns += copy.exposed_ns;
    if (copy.bytes && copy.sum_ns > 0)
      copies.pinned_rate = 1e9 * static_cast<double>(*copy.bytes) / static_cast<double>(copy.sum_ns);
  }
  return copies;
}

// Pinned memory gains nothing where most of what is exposed is pinned already; by time, not by count: every
// program makes some small pageable copies (scalars, indices).
bool IsPageable(const record::Loader* loader, const record::RankInfo& info) {
  if (info.tables && !info.tables->copies.empty()) {
    const ExposedCopies copies = CopiesToDevice(info);
    return copies.pageable_ns > copies.pinned_ns;
  }
  return loader != nullptr && loader->library != record::kFullboreData && !loader->pin_memory;
}

std::string TitleOf(const record::RankInfo& info, double share, bool pageable) {
  const ExposedCopies copies = CopiesToDevice(info);
  const std::string title =
      fmt::format("Exposed copies between host and device take {} of the step", FormatPercent(share));
  if (pageable) return title + ", from pageable memory.";
  if (copies.pinned_ns > 0 && copies.pinned_rate > 0) {
    return title +
           fmt::format(", from pinned memory at {}/s: only fewer bytes, or a faster link, make them shorter.",
                       FormatBytes(copies.pinned_rate));
  }
  return title + ".";
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
  const bool pageable = !staged && IsPageable(loader, *rank.info);
  finding.title = TitleOf(*rank.info, share, pageable);
  evidence.FromSteps(rank, "exposed copies", share, "ratio");
  if (staged) {
    finding.change = fmt::format("{}(device=\"cuda\")", loader->dataset);
    finding.fix = {
        finding.change +
        ": the loader copies each batch from pinned memory on a side stream, ahead of the training"};
  } else if (!AdviseBest(rank, {"pin", "side-stream", "bytes"}, finding)) {
    if (pageable) finding.change = "DataLoader(pin_memory=True)";
    finding.fix = {
        pageable ? "DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True): the copy overlaps "
                   "with compute"
                 : "copy the next batch on a side stream while this one is computed",
        "send uint8 and convert on the device: a quarter of the bytes"};
  }
  finding.where = view.HottestLines(kind);
  if (!ReplayableGraph(rank)) {
    finding.speedup = RemovalOf(share, 0.5);
    finding.method = "the exposed copies hidden; at the low end, half of them";
  }
  PointAtWorstStep(rank, kind, finding);
  return finding;
}

}  // namespace fullbore::diagnose
