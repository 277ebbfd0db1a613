// launch-bound, sync-bound and copy-bound: why the device idles although data is there. Exact where device
// activity was recorded; from NVML's utilisation and the training thread's phases where it was not.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Metric;
using record::Share;

namespace {

constexpr double kShortKernelNs =
    10'000;  // a launch costs the host 5 to 10 us: shorter kernels cannot hide it

const std::vector<std::string>& LaunchAdvice() {
  static const std::vector<std::string> advice = {
      "torch.compile(model), or CUDA graphs (mode=\"reduce-overhead\"): many launches become few",
      "fused optimizer: torch.optim.AdamW(..., fused=True)",
      "a larger batch, where memory and accuracy allow: the same launches do more work",
      "move per-step Python work (metrics, logging, list building) out of the loop"};
  return advice;
}

// The device waits for the host's next launch, or between kernels that were queued already: many small
// kernels cost both.
void JudgeLaunchFromTrace(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const record::RankInfo& info = *rank.info;
  const double launch = rank.Ratio(Share::kLaunch), gap = rank.Ratio(Share::kGap);
  const bool gaps = gap > launch;
  const double share = gaps ? gap : launch;
  const auto severity = SeverityOf(share, kLaunch, Observations(rank));
  if (!severity) return;
  Finding finding;
  finding.id = "launch-bound";
  finding.cause = gaps ? "gaps" : "";
  finding.severity = *severity;
  finding.share = share;
  finding.title =
      gaps ? fmt::format("The device idles {} of the time between kernels that were queued already.",
                         FormatPercent(share))
           : fmt::format("The device idles {} of the time until the host has launched the next kernel.",
                         FormatPercent(share));
  finding.evidence.push_back({gaps ? "idle between queued kernels" : "idle until the next launch",
                              share,
                              "ratio",
                              "trace",
                              "",
                              {},
                              {}});
  if (info.kernels && info.compute_ns && *info.kernels > 0) {
    const double mean = static_cast<double>(*info.compute_ns) / static_cast<double>(*info.kernels);
    finding.evidence.push_back({"a kernel takes on average", mean / 1e3, "us", "trace", "", {}, {}});
    finding.evidence.push_back({"kernels", static_cast<double>(*info.kernels), "count", "trace", "", {}, {}});
    if (mean < kShortKernelNs && !gaps) {
      finding.cause = "small-kernels";
      finding.title = fmt::format(
          "Kernels are too short to hide their launches ({} on average): the device idles {} of the time "
          "until the next is launched.",
          FormatDuration(static_cast<int64_t>(mean)), FormatPercent(share));
    }
  }
  if (info.tables && info.tables->launches && info.tables->launches->count > 0) {
    const record::LaunchStats& launches = *info.tables->launches;
    const auto count = static_cast<double>(launches.count);
    finding.evidence.push_back({"launched when the device had run dry",
                                static_cast<double>(launches.late) / count,
                                "ratio",
                                "trace",
                                "",
                                {},
                                {}});
    finding.evidence.push_back({"kernels shorter than the call that launched them",
                                static_cast<double>(launches.short_kernels) / count,
                                "ratio",
                                "trace",
                                "",
                                {},
                                {}});
    finding.evidence.push_back(
        {"a launch takes the host, median", launches.call_ns.Quantile(0.5) / 1e3, "us", "trace", "", {}, {}});
  }
  finding.fix = LaunchAdvice();
  finding.where = view.HottestLines(Share::kLaunch);
  finding.speedup = RemovalOf(share, 0.5);
  finding.method = "this idle time removed; at the low end, half of it";
  PointAtWorstStep(rank, gaps ? Share::kGap : Share::kLaunch, finding);
  diagnosis.findings.push_back(std::move(finding));
}

// Without device activity: the GPU idles, and the training thread neither waits for data nor does anything
// but train.
void JudgeLaunchFromUtilization(const View& view, Diagnosis& diagnosis) {
  const auto utilization = view.Mean(Metric::kGpuUtilization);
  const RankView& rank = view.lead();
  if (!utilization || *utilization >= kDeviceBusy) return;
  const double elsewhere =
      rank.Ratio(Share::kDataWait) + rank.Ratio(Share::kHostOther) + rank.Ratio(Share::kCommExposed);
  const double idle = 1 - *utilization - elsewhere;
  const auto severity = SeverityOf(idle, kLaunch, rank.steps);
  if (!severity) return;
  Finding finding;
  finding.id = "launch-bound";
  finding.severity = *severity;
  finding.share = idle;
  const auto trainer = view.Mean(Metric::kProcessCpu, {{"role", "trainer"}});
  finding.title = fmt::format(
      "The GPU idles {} of the time while the training thread runs code: the code does not keep it fed.",
      FormatPercent(idle));
  finding.evidence.push_back({"GPU utilisation", *utilization, "ratio", "nvml", "gpu_utilization", {}, {}});
  if (trainer)
    finding.evidence.push_back({"cores the trainer uses", *trainer, "cores", "proc", "process_cpu", {}, {}});
  if (view.cores() > 0)
    finding.evidence.push_back({"cores there are", view.cores(), "cores", "proc", "", {}, {}});
  finding.fix = LaunchAdvice();
  if (trainer && view.cores() >= 2 && *trainer < view.cores() / 2) {
    finding.fix.insert(
        finding.fix.begin(),
        fmt::format("one thread does the host's work while {} of {} cores idle: move it to others "
                    "(loader workers, threads), or make it less",
                    FormatCount(view.cores() - *trainer), FormatCount(view.cores())));
  }
  finding.where = view.HottestLines(Share::kForward);
  finding.speedup = RemovalOf(idle, 0.3);
  finding.method = "the GPU's idle time that no other cause explains removed; at the low end, 30 % of it";
  diagnosis.findings.push_back(std::move(finding));
}

bool HasPageableCopies(const record::RankInfo& info) {
  return info.tables && std::any_of(info.tables->copies.begin(), info.tables->copies.end(),
                                    [](const record::CopyStats& copy) {
                                      return copy.kind == "copy_h2d_pageable" && copy.exposed_ns > 0;
                                    });
}

void AddCallSites(const record::RankInfo& info, Finding& finding) {
  constexpr size_t kMostSites = 3;
  if (!info.tables) return;
  for (const record::SyncStats& sync : info.tables->syncs) {
    if (sync.idle_ns == 0 || finding.evidence.size() > kMostSites) break;
    finding.evidence.push_back(
        {fmt::format("idle behind {} in {}", sync.call, sync.where.empty() ? "unknown code" : sync.where),
         static_cast<double>(sync.idle_ns) / 1e6,
         "ms",
         "trace",
         "",
         {},
         {}});
  }
}

}  // namespace

void JudgeLaunch(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  if (!rank.info->device_activity) {
    JudgeLaunchFromUtilization(view, diagnosis);
    diagnosis.not_judged.push_back(
        {"launch, gaps and copies on the device", "no device activity was recorded",
         view.has_gpu() ? "a PyTorch-profiler trace of some steps: fullbore explain TRACE" : "a GPU"});
    return;
  }
  JudgeLaunchFromTrace(view, diagnosis);
}

void JudgeSync(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const double share = rank.Ratio(Share::kSync);
  const auto severity = SeverityOf(share, kSync, Observations(rank));
  // Seen from the training thread alone, a synchronisation is where it waits for a busy device: no cost by
  // itself.
  if (!severity || !rank.info->device_activity) return;
  Finding finding;
  finding.id = "sync-bound";
  finding.severity = *severity;
  finding.share = share;
  finding.title = fmt::format(
      "The device idles {} of the time because the host waited for it and only then went on launching.",
      FormatPercent(share));
  finding.fix = {
      "log every N steps: each .item(), .cpu(), print(tensor) stops the host until the device is done, "
      "and so does GradScaler.step unless the optimizer is fused",
      "keep metrics on the device and read them once an epoch",
      "copies to the device with pin_memory=True, non_blocking=True"};
  finding.where = view.HottestLines(Share::kSync);
  finding.evidence.push_back({"idle after a synchronisation", share, "ratio", "trace", "", {}, {}});
  AddCallSites(*rank.info, finding);
  PointAtWorstStep(rank, Share::kSync, finding);
  finding.speedup = RemovalOf(share, 0.5);
  finding.method = "the idle time behind synchronisations removed; at the low end, half of it";
  diagnosis.findings.push_back(std::move(finding));
}

void JudgeCopies(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const Share kind = rank.info->device_activity ? Share::kCopyExposed : Share::kH2d;
  const double share = rank.Ratio(kind);
  const auto severity = SeverityOf(share, kCopyExposed, Observations(rank));
  if (!severity) return;
  const record::Loader* loader = rank.TrainingLoader();
  Finding finding;
  finding.id = "copy-bound";
  finding.severity = *severity;
  finding.share = share;
  const bool staged = loader && loader->library == record::kFullboreData;
  const bool pageable = loader && !staged ? !loader->pin_memory : HasPageableCopies(*rank.info);
  finding.title = fmt::format("Copies between host and device take {} of the step that nothing hides{}.",
                              FormatPercent(share), pageable ? ", from pageable memory" : "");
  if (staged) {
    finding.change = fmt::format("{}(device=\"cuda\")", loader->dataset);
    finding.fix = {
        finding.change +
        ": the loader copies each batch from pinned memory on a side stream, ahead of the training"};
  } else {
    if (pageable) finding.change = "DataLoader(pin_memory=True)";
    finding.fix = {
        "DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True): the copy runs beside the "
        "compute"};
  }
  finding.fix.insert(finding.fix.end(), {"copy the next batch on a side stream while this one is computed",
                                         "send uint8 and convert on the device: a quarter of the bytes"});
  finding.where = view.HottestLines(kind);
  finding.evidence.push_back({"copies that nothing hides",
                              share,
                              "ratio",
                              rank.info->device_activity ? "trace" : "hook",
                              "",
                              {},
                              {}});
  finding.speedup = RemovalOf(share, 0.5);
  finding.method = "the exposed copies hidden; at the low end, half of them";
  PointAtWorstStep(rank, kind, finding);
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace fullbore::diagnose
