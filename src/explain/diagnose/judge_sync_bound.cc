// sync-bound: the device idles because the host waits for it before launching more work.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"
#include "explain/diagnose/judge_sync_bound_host.h"

namespace fullbore::diagnose {

using record::Share;

namespace {

// If the waits explain this part of the idle time before launches, launches are a symptom.
constexpr double kMinExplained = 0.5;
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
  if (!rank.info->device_activity) return SyncSeenFromHost(view);
  // After a wait the host has nothing launched ahead, so that the device waits for launches as well. How much of that
  // is due to the wait, the replay without it tells.
  const double sync = rank.Ratio(Share::kSync), launch = rank.Ratio(Share::kLaunch);
  const double saved = SavedBy(rank, "no-sync");
  const bool causes_launches = saved >= kSync.warning && saved > sync;
  const double share = causes_launches ? std::min(saved, sync + launch) : sync;
  const auto severity = SeverityOf(share, kSync, Observations(rank));
  if (!severity) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = *severity;
  finding.share = share;
  finding.title =
      fmt::format("The device idles {} of the time because the host waits for it before launching more work.",
                  FormatPercent(share));
  finding.fix = {"keep metrics on the device and read them once an epoch"};
  finding.where = view.HottestLines(Share::kSync);
  evidence.FromTrace("idle after a synchronisation", sync, "ratio");
  if (causes_launches) {
    evidence.FromReplay("idle until the next launch that would be hidden without it", share - sync, "ratio");
    if (share - sync >= kMinExplained * launch) finding.supersedes = {{"launch-bound", ""}};
  }
  AddCallSites(*rank.info, evidence);
  PointAtWorstStep(rank, Share::kSync, finding);
  AdviseBest(rank, {"pin", "no-sync"}, finding);
  return finding;
}

}  // namespace fullbore::diagnose
