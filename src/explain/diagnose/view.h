// What the judges look at: one stage of a recording, cut to its steady state.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "record/metrics.h"
#include "record/recording.h"

namespace fullbore::diagnose {

struct RankView {
  const record::RankInfo* info = nullptr;
  std::vector<const record::Step*> steady;  // those kept in full, by index
  int64_t warmup_steps = 0;                 // the steady state begins with the step of this index
  int64_t warmup_recorded = 0;              // of those before it: steps under a profiler of ours are not
  int64_t warmup_ns = 0;
  int64_t bare_steps = 0;  // left out, since launches in them ran nothing that was recorded
  // The steady state's own first steps, where they were slower and nothing says that it was warm-up; 0 if none.
  int64_t slow_steps = 0;
  int64_t steps = 0;  // of the steady state, whether kept in full or not, like the sums below
  int64_t wall_ns = 0;
  int64_t samples = 0;
  record::ShareTimes share_ns{};
  std::array<int64_t, record::kHostOtherCount> host_other_ns{};
  int64_t begin_ns = 0, end_ns = 0;
  std::vector<const record::StepGraph*> graphs;  // of all ranks

  double Ratio(record::Share share) const;  // of the wall time
  double Ratio(record::HostOther part) const;
  double MeanStepNs() const { return steps ? static_cast<double>(wall_ns) / static_cast<double>(steps) : 0; }
  const record::Loader* TrainingLoader() const;  // the busiest one that feeds the steps, or null
};

class View {
 public:
  View(const record::Recording& recording, const record::Stage& stage);

  const record::Recording& recording() const { return *recording_; }
  const record::Stage& stage() const { return *stage_; }
  const std::vector<RankView>& ranks() const { return ranks_; }
  // The rank whose steps are judged: the first. Empty recordings have none: check HasSteps() first.
  const RankView& lead() const { return ranks_.front(); }
  size_t RanksOnLeadsMachine() const;  // whose cores and disks the series are of; the lead included
  // Whether the rank steps during most of the lead's steady state, on its machine.
  bool IsBesideLead(const RankView& rank) const;
  // How many ranks do, the lead included; 1 without steps.
  size_t RanksBesideEachOther() const;
  bool HasSteps() const { return !ranks_.empty() && ranks_.front().steps > 0; }
  int64_t begin_ns() const { return begin_ns_; }
  int64_t end_ns() const { return end_ns_; }

  // Statistics of a series over the steady state; nothing if it was not recorded. If the metric has several
  // series (several GPUs or disks), `labels` picks the one with exactly these labels; without labels, Mean
  // and Max cover all of them, and Sum adds their means.
  std::optional<double> Mean(record::Metric metric, const record::Labels& labels = {}) const;
  std::optional<double> Sum(record::Metric metric, const record::Labels& labels = {}) const;
  std::optional<double> Max(record::Metric metric, const record::Labels& labels = {}) const;
  // Over the time after the last step, while the stage went on.
  std::optional<double> MeanAfterSteps(record::Metric metric) const;
  std::optional<double> CoresAfterSteps() const;  // of the command, as CoresOfCommand
  bool Has(record::Metric metric) const { return Mean(metric).has_value(); }
  // Whether the mean leaves out the reading that began before the steady state: in the first seconds it is most of what
  // was read, and says what the start did.
  bool IsSettled(record::Metric metric, const record::Labels& labels) const;

  double cores() const { return cores_; }  // that the command may use; 0 if unknown
  // Cores that programs outside the command keep busy; nothing if that is not known.
  std::optional<double> CoresOfOthers() const;
  std::optional<double> CoresOfCommand() const;  // mean over the steady state
  // Cores that processes of this role ("loader", "trainer") may run on, where those are fewer than the command's.
  std::optional<double> NarrowAffinity(const char* role) const;
  bool has_gpu() const;
  bool ComputesOnCpu() const;  // the lead rank's model, as far as is known
  // Whether the series concerns the command. That of a GPU which only other people's processes use does not.
  bool IsOurs(const record::SeriesKey& key) const;
  // Where no steps were seen: the lead's "steps" are seconds of samples of its stack.
  std::optional<Sampling> sampling() const;
  // A fact of the lead rank, as text without JSON quotes.
  std::optional<std::string> Fact(const std::string& key) const;

  // The lines in which `share` was sampled most often, most frequent first.
  std::vector<Place> HottestLines(record::Share share, size_t most = 3) const;

 private:
  const record::Recording* recording_;
  const record::Stage* stage_;
  std::vector<RankView> ranks_;
  int64_t begin_ns_ = 0, end_ns_ = 0;
  double cores_ = 0;
  std::set<std::string> used_gpus_;  // labels; empty if not known, which means all
};

}  // namespace fullbore::diagnose
