// sync-bound: the device idles because the host waits for it before launching more work.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Share;

namespace {

constexpr size_t kMaxSites = 3;  // listed one by one: more would be a table, not evidence

void AddCallSites(const record::RankInfo& info, const EvidenceBuilder& evidence) {
  if (!info.tables) return;
  size_t left = kMaxSites;
  for (const record::SyncStats& sync : info.tables->syncs) {
    if (sync.idle_ns == 0 || left-- == 0) break;
    evidence.FromTrace(
        fmt::format("idle behind {} in {}", sync.call, sync.where.empty() ? "unknown code" : sync.where),
        static_cast<double>(sync.idle_ns) / 1e6, "ms");
  }
}

}  // namespace

std::optional<Finding> JudgeSyncBound(const View& view, Diagnosis& /*diagnosis*/) {
  const RankView& rank = view.lead();
  const double share = rank.Ratio(Share::kSync);
  const auto severity = SeverityOf(share, kSync, Observations(rank));
  // Seen from the training thread alone, a synchronisation is only a wait for a busy device: no cost in
  // itself.
  if (!severity || !rank.info->device_activity) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = *severity;
  finding.share = share;
  finding.title =
      fmt::format("The device idles {} of the time because the host waits for it before launching more work.",
                  FormatPercent(share));
  finding.fix = {"keep metrics on the device and read them once an epoch"};
  finding.where = view.HottestLines(Share::kSync);
  evidence.FromTrace("idle after a synchronisation", share, "ratio");
  AddCallSites(*rank.info, evidence);
  PointAtWorstStep(rank, Share::kSync, finding);
  AdviseBest(rank, {"pin", "no-sync"}, finding);
  return finding;
}

}  // namespace fullbore::diagnose
