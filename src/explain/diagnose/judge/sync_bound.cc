// sync-bound: the device idles because the host waits for it before launching more work.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/judge/sync_bound_host.h"
#include "explain/diagnose/program.h"
#include "timeline/device/kinds.h"

namespace fullbore::diagnose {

using record::Share;

namespace {

// If the waits explain this part of the idle time before launches, launches are a symptom.
constexpr double kMinExplained = 0.5;
// So many calls that free memory, of the kernels, are no cache that makes room now and then: eager PyTorch frees
// about as many tensors as it launches kernels.
constexpr double kFreesOfNoCache = 0.1;
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

// Calls that take and free the device's memory, which wait for the device: no value is read there.
struct Allocator {
  int64_t idle_ns = 0, frees = 0, calls = 0;
};

Allocator AllocatorIn(const record::RankInfo& info) {
  Allocator allocator;
  if (!info.tables) return allocator;
  for (const record::SyncStats& sync : info.tables->syncs) {
    if (timeline::ClassifyCall(sync.call) != timeline::CallKind::kMemory) continue;
    allocator.idle_ns += sync.idle_ns;
    allocator.calls += sync.count;
    if (sync.call.find("Free") != std::string::npos) allocator.frees += sync.count;
  }
  return allocator;
}

int64_t IdleBehindSyncs(const record::RankInfo& info) {
  int64_t idle_ns = 0;
  if (!info.tables) return 0;
  for (const record::SyncStats& sync : info.tables->syncs) idle_ns += sync.idle_ns;
  return idle_ns;
}

std::optional<Finding> FromAllocator(const RankView& rank, const Allocator& allocator) {
  const double share = rank.Ratio(Share::kSync);
  const auto severity = SeverityOf(share, kSync, Observations(rank));
  if (!severity) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  // PyTorch frees a tensor's memory at once only without its cache; with it, only when it runs out of memory.
  const auto kernels = static_cast<double>(rank.info->kernels.value_or(0));
  const bool off = kernels > 0 && static_cast<double>(allocator.frees) >= kFreesOfNoCache * kernels;
  finding.severity = *severity;
  finding.cause = "allocator";
  finding.share = share;
  finding.title = fmt::format("The device idles {} of the time behind calls that take and free its memory{}.",
                              FormatPercent(share), off ? ": the caching allocator is off" : "");
  if (off) {
    finding.change = "unset PYTORCH_NO_CUDA_MEMORY_CACHING";
    finding.fix = {
        "unset PYTORCH_NO_CUDA_MEMORY_CACHING (it is for debugging), and use no allocator of your own that "
        "keeps nothing (torch.cuda.memory.change_current_allocator)"};
  } else {
    finding.fix = {
        "no torch.cuda.empty_cache() in the loop: what it frees has to be taken again",
        "where memory is nearly full, the allocator frees its cache to make room: a smaller batch, or "
        "PYTORCH_ALLOC_CONF=expandable_segments:True (before PyTorch 2.10: PYTORCH_CUDA_ALLOC_CONF)"};
  }
  evidence.FromTrace("idle behind calls that take and free memory",
                     static_cast<double>(allocator.idle_ns) / 1e6, "ms");
  evidence.FromTrace("such calls that wait for the device", static_cast<double>(allocator.calls), "count");
  evidence.FromTrace("kernels", kernels, "count");
  AddCallSites(*rank.info, evidence);
  PointAtWorstStep(rank, Share::kSync, finding);
  Quote(rank, "allocator", "the recorded steps run again without calls that take and free memory", finding);
  return finding;
}

}  // namespace

std::optional<Finding> JudgeSyncBound(const View& view, Diagnosis& /*diagnosis*/) {
  const RankView& rank = view.lead();
  if (!rank.info->device_activity) return SyncSeenFromHost(view);
  if (const Allocator allocator = AllocatorIn(*rank.info);
      2 * allocator.idle_ns > IdleBehindSyncs(*rank.info))
    return FromAllocator(rank, allocator);
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
  const Program program = ProgramOf(*rank.info);
  finding.fix = {
      program.engine.empty()
          ? "keep metrics on the device and read them once an epoch"
          : "the engine's asynchronous scheduling: it prepares the next iteration while this one runs"};
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
