#include "explain/diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "base/time_limit.h"
#include "explain/diagnose/advice.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/logged.h"
#include "explain/diagnose/memory_budget.h"
#include "explain/diagnose/model_flops.h"
#include "explain/diagnose/no_steps.h"
#include "explain/diagnose/nodes.h"
#include "explain/diagnose/noise.h"
#include "explain/diagnose/quotes.h"
#include "explain/diagnose/serving.h"
#include "explain/diagnose/setup.h"
#include "explain/diagnose/statistics.h"
#include "explain/diagnose/tokens.h"
#include "explain/diagnose/view_fitness.h"
#include "record/collective.h"

namespace fullbore::diagnose {

using fitness::Conclusion;
using record::Share;
using record::Stage;

namespace {

constexpr char kReader[] = "ingest";  // of traces; what else is only for information stays in the run file
constexpr char kLimit[] = "--for";    // of runs that we ended

void FillResources(const View& view, Diagnosis& diagnosis) {
  for (const record::Series& series : view.stage().series) {
    if (IsOf(series.key, record::Metric::kLogged) || IsOf(series.key, record::Metric::kLoggedStep)) continue;
    std::vector<double> values;
    double sum = 0;
    for (const record::Reading& reading : series.readings) {
      if (reading.t_ns < view.begin_ns() || reading.t_ns > view.end_ns()) continue;
      values.push_back(reading.value);
      sum += reading.value;
    }
    if (values.empty()) continue;
    const double mean = sum / static_cast<double>(values.size());
    diagnosis.resources[record::LabelledName(series.key)] = {
        mean, Quantile(values, 0.5), Quantile(values, 0.95), *std::max_element(values.begin(), values.end()),
        series.key.unit};
  }
}

CollectiveSummary SummaryOf(const record::CollectiveStats& stats) {
  return {stats.kind,
          stats.group,
          stats.group_size,
          stats.count,
          stats.bytes,
          stats.sum_ns,
          stats.exposed_ns,
          stats.wait_ns,
          record::AlgorithmBandwidth(stats),
          record::BusBandwidth(stats)};
}

RankShares SharesOf(const RankView& rank) {
  RankShares shares;
  shares.rank = rank.info->rank;
  shares.device = rank.info->device;
  shares.steps = rank.steps;
  shares.mean_step_ns = rank.MeanStepNs();
  for (size_t i = 0; i < record::kShareCount; ++i) {
    const auto share = static_cast<Share>(i);
    if (rank.share_ns[i] > 0) shares.shares[std::string(Name(share))] = rank.Ratio(share);
  }
  const record::RankInfo& info = *rank.info;
  shares.span_ns = info.span_ns;
  shares.busy_ns = info.busy_ns;
  shares.compute_ns = info.compute_ns;
  shares.comm_ns = info.comm_ns;
  shares.comm_exposed_ns = info.comm_exposed_ns;
  shares.copy_ns = info.copy_ns;
  shares.copy_exposed_ns = info.copy_exposed_ns;
  shares.kernels = info.kernels;
  shares.kernel_class_ns = info.kernel_class_ns;
  if (info.comm_ns && info.comm_overlapped_ns && *info.comm_ns > 0) {
    shares.comm_overlap_ratio =
        static_cast<double>(*info.comm_overlapped_ns) / static_cast<double>(*info.comm_ns);
  }
  if (info.tables) {
    for (const record::CollectiveStats& stats : info.tables->collectives)
      shares.collectives.push_back(SummaryOf(stats));
  }
  return shares;
}

// Whether the rank's samples come beside those of the lead: not those of a program that the training started, or that
// ran before it, for a smaller part of that time.
bool AddsToThroughput(const View& view, const RankView& rank) {
  const RankView& lead = view.lead();
  if (rank.info->node == lead.info->node) return view.IsBesideLead(rank);
  return rank.begin_ns < lead.end_ns && rank.end_ns > lead.begin_ns;
}

// How well the rate of its samples is known, from the means of batches of steps. A long run keeps its slowest steps in full
// and few of the others: windows stand for all of them then, and, before there are enough of these, its first steps.
std::optional<Interval> RateIntervalOf(const RankView& rank) {
  std::vector<double> samples, seconds;
  const auto add = [&](int64_t count, int64_t ns) {
    samples.push_back(static_cast<double>(count));
    seconds.push_back(static_cast<double>(ns) / 1e9);
  };
  const bool all_kept = rank.steps <= std::ssize(rank.steady);
  for (const record::StepWindow& window : rank.info->windows) {
    if (!all_kept && window.first_step >= rank.warmup_steps)
      add(window.samples, std::reduce(window.share_ns.begin(), window.share_ns.end()));
  }
  if (const auto interval = RatioInterval(samples, seconds)) return interval;
  samples.clear(), seconds.clear();
  for (const record::Step* step : rank.steady) {
    if (all_kept || step->index == rank.steady.front()->index + std::ssize(samples))
      add(step->samples, step->wall_ns);
  }
  return RatioInterval(samples, seconds);
}

// The samples of all ranks per second, with the interval of the lead's.
void FillThroughput(const View& view, Diagnosis& diagnosis) {
  const RankView& lead = view.lead();
  diagnosis.steps_per_s = static_cast<double>(lead.steps) / (static_cast<double>(lead.wall_ns) / 1e9);
  if (FillServing(view, diagnosis)) return;
  diagnosis.flops = ModelFlopsOf(view, diagnosis.steps_per_s);
  if (const std::string why = WhyNoModelFlops(view); !why.empty())
    diagnosis.not_judged.push_back({"the model's FLOP/s and MFU", why, ""});
  if (lead.samples == 0 || !lead.info->samples_known) {
    diagnosis.not_judged.push_back({"samples per second", "the size of a batch could not be seen",
                                    "batches of tensors whose first dimension counts samples"});
    return;
  }
  double samples_per_s = 0;
  for (const RankView& rank : view.ranks()) {
    if (AddsToThroughput(view, rank) && rank.wall_ns > 0)
      samples_per_s += static_cast<double>(rank.samples) / (static_cast<double>(rank.wall_ns) / 1e9);
  }
  diagnosis.samples_per_s = samples_per_s;
  if (const auto tokens = SampleTokensOf(view)) {
    diagnosis.tokens_per_s = samples_per_s * tokens->computed;
    if (tokens->useful) diagnosis.useful_tokens_per_s = samples_per_s * *tokens->useful;
  }
  if (const auto interval = RateIntervalOf(lead); interval && interval->mean > 0) {
    diagnosis.samples_per_s_low = samples_per_s * std::max(0.0, interval->low) / interval->mean;
    diagnosis.samples_per_s_high = samples_per_s * interval->high / interval->mean;
  }
}

std::vector<Regime> RegimesOf(const RankView& rank) {
  std::vector<Regime> regimes(2);
  std::array<double, 2> seen{};
  for (const record::Step* step : rank.steady) {
    const size_t which = step->index < rank.warmup_steps + rank.slow_steps ? 0 : 1;
    regimes[which].mean_step_ns += static_cast<double>(step->wall_ns);
    ++seen[which];
  }
  if (seen[0] == 0 || seen[1] == 0) return {};
  for (size_t i = 0; i < 2; ++i) regimes[i].mean_step_ns /= seen[i];
  regimes[0].steps = static_cast<int64_t>(seen[0]);
  regimes[1].steps = rank.steps - regimes[0].steps;
  return regimes;
}

// Stacks say where the time goes, and nothing of steps.
void NoteSampling(const View& view, Diagnosis& diagnosis) {
  diagnosis.sampled = view.sampling();
  diagnosis.mean_step_ns = diagnosis.median_step_ns = diagnosis.p95_step_ns = 0;
  for (RankShares& rank : diagnosis.ranks) rank.steps = 0, rank.mean_step_ns = 0;
  diagnosis.not_judged.push_back({"steps and samples per second", "samples of stacks do not show them",
                                  "fullbore run -- COMMAND, when it is started the next time"});
}

// What a finding's evidence says of single steps and batches, where it stands on seconds of samples.
void DropFiguresOfSteps(std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    std::erase_if(finding.evidence, [](const Evidence& evidence) {
      return evidence.unit == "ms" || evidence.unit == "ms per step" || evidence.unit == "steps/s" ||
             evidence.unit == "samples/s";
    });
  }
}

void FillSteps(const View& view, Diagnosis& diagnosis) {
  const RankView& lead = view.lead();
  diagnosis.steps = lead.steps;
  diagnosis.warmup_steps = lead.warmup_recorded;
  if (lead.warmup_recorded > 0) {
    diagnosis.warmup_why =
        fmt::format("the first {} took {}, the others {} on average",
                    lead.warmup_recorded == 1 ? "step" : fmt::format("{} steps", lead.warmup_recorded),
                    FormatDuration(lead.warmup_ns / lead.warmup_recorded),
                    FormatDuration(static_cast<int64_t>(lead.MeanStepNs())));
  }
  if (lead.slow_steps > 0) diagnosis.regimes = RegimesOf(lead);
  std::vector<double> wall_ns;
  for (const record::Step* step : lead.steady) wall_ns.push_back(static_cast<double>(step->wall_ns));
  diagnosis.mean_step_ns = lead.MeanStepNs();
  diagnosis.median_step_ns = Median(wall_ns);
  diagnosis.p95_step_ns = Quantile(wall_ns, 0.95);
  diagnosis.device_shares = lead.info->device_activity;
  const record::Noticed& noticed = lead.info->noticed;
  if (noticed.recomputed_ns > 0 && noticed.computed_ns > 0)
    diagnosis.recomputed =
        static_cast<double>(noticed.recomputed_ns) / static_cast<double>(noticed.computed_ns);
  for (const RankView& rank : view.ranks()) diagnosis.ranks.push_back(SharesOf(rank));
  diagnosis.nodes = NodesOf(view);
  diagnosis.shares = diagnosis.ranks.front().shares;
  for (size_t i = 0; i < record::kHostOtherCount; ++i) {
    const auto part = static_cast<record::HostOther>(i);
    if (lead.Ratio(part) > 0) diagnosis.host_other_parts[std::string(Name(part))] = lead.Ratio(part);
  }
  diagnosis.facts = lead.info->facts;
  diagnosis.facts.erase(kLoggedFact);  // its counts are told with the metrics
  diagnosis.facts.merge(LoaderFacts(*lead.info));
  if (view.Fact("step_is") == "batch") {
    diagnosis.not_judged.push_back({"optimizer steps",
                                    "no optimizer of torch.optim stepped: each batch, or each backward pass "
                                    "where there is no loader, counts as a step",
                                    ""});
  }
  if (view.sampling())
    NoteSampling(view, diagnosis);
  else
    FillThroughput(view, diagnosis);
}

// Each cause is named once: what a finding supersedes is removed.
void RemoveSuperseded(std::vector<Finding>& findings) {
  std::vector<Finding::Superseded> superseded;
  for (const Finding& finding : findings)
    superseded.insert(superseded.end(), finding.supersedes.begin(), finding.supersedes.end());
  std::erase_if(findings, [&](const Finding& finding) {
    return std::ranges::any_of(superseded, [&](const Finding::Superseded& one) {
      return one.id == finding.id && (one.cause.empty() || one.cause == finding.cause);
    });
  });
}

// All that the recording's fitness forbids to conclude is left out here, and nowhere else.
void Judge(const View& view, Diagnosis& diagnosis) {
  const auto judged = [&](const FindingRow& row) {
    TimeLimit::Check();
    std::optional<Finding> finding;
    if (row.concludes && diagnosis.fitness.Forbids(*row.concludes)) return finding;
    if (row.when == When::kAlways || view.HasSteps()) finding = row.judge(view, diagnosis);
    if (finding) finding->id = row.id;
    return finding;
  };
  for (const FindingRow& row : AllFindings()) {
    if (row.when == When::kLast) continue;
    if (auto finding = judged(row)) diagnosis.findings.push_back(std::move(*finding));
  }
  RemoveSuperseded(diagnosis.findings);
  KeepOneGainOfEach(diagnosis.findings);
  const fitness::Doubt doubt = DoubtOf(view);
  for (Finding& finding : diagnosis.findings) Widen(finding, doubt);
  DropForbiddenGains(diagnosis);
  RankByGain(diagnosis.findings);
  for (const FindingRow& row : AllFindings()) {
    if (row.when != When::kLast) continue;
    if (auto finding = judged(row))
      diagnosis.findings.insert(diagnosis.findings.begin(), std::move(*finding));
  }
}

}  // namespace

const Stage* JudgedStage(const record::Recording& recording, const std::string& name) {
  const Stage* chosen = nullptr;
  int64_t most_ns = -1;
  for (const Stage& stage : recording.stages) {
    if (!name.empty() && stage.name != name) continue;
    int64_t stepped_ns = 0;
    for (const record::RankInfo& rank : stage.ranks) {
      for (const record::StepWindow& window : rank.windows) stepped_ns += window.end_ns - window.begin_ns;
      if (rank.windows.empty() && !rank.steps.empty())
        stepped_ns += rank.steps.back().end_ns - rank.steps.front().end_ns;
    }
    if (stepped_ns > most_ns) {
      most_ns = stepped_ns;
      chosen = &stage;
    }
  }
  return chosen;
}

Diagnosis Diagnose(const record::Recording& recording, const std::string& stage_name,
                   const std::vector<const replay::Change*>& what_if) {
  Diagnosis diagnosis;
  diagnosis.run_id = recording.id;
  diagnosis.source = recording.path;
  diagnosis.machine = recording.machine;
  const Stage* stage = JudgedStage(recording, stage_name);
  if (!stage) return diagnosis;
  diagnosis.stage = stage->name;
  diagnosis.exit_status = stage->exit_status;
  diagnosis.out_of_memory = stage->out_of_memory;
  for (const record::Message& message : stage->messages) {
    if (message.severity != record::Severity::kInfo)
      diagnosis.messages.push_back(message.source + ": " + message.text);
    else if (message.source == kReader || message.source == kLimit)
      diagnosis.notes.push_back(message.text);
  }
  const View view(recording, *stage);
  diagnosis.fitness = FitnessOf(view);
  diagnosis.begin_ns = view.begin_ns();
  diagnosis.end_ns = view.end_ns();
  FillResources(view, diagnosis);
  diagnosis.logged = LoggedOf(*stage);
  diagnosis.memory = MemoryBudgetOf(view);
  if (view.HasSteps()) {
    FillSteps(view, diagnosis);
  } else {
    SayWhyNoSteps(recording, *stage, diagnosis);
  }
  Judge(view, diagnosis);
  if (diagnosis.sampled) DropFiguresOfSteps(diagnosis.findings);
  if (view.HasSteps())
    diagnosis.replay = ReportOf(view.lead(), what_if, diagnosis.fitness, diagnosis.findings);
  return diagnosis;
}

}  // namespace fullbore::diagnose
