// Adds evidence to a finding, a figure a call. Where it comes from is the name of the call; unit, source and
// series of a metric are those of its table.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"
#include "record/metrics.h"

namespace fullbore::diagnose {

class EvidenceBuilder {
 public:
  explicit EvidenceBuilder(Finding& finding) : evidence_(&finding.evidence) {}

  void FromHook(std::string what, double value, std::string unit) const;
  void FromTrace(std::string what, double value, std::string unit) const;
  // Of the steps of a rank: from the trace where device activity was recorded, else from the hook.
  void FromSteps(const RankView& rank, std::string what, double value, std::string unit) const;
  // Calculated by the replay of the recorded steps.
  void FromReplay(std::string what, double value, std::string unit) const;
  // Of the machine, but no series: how many cores there are.
  void FromMachine(std::string what, double value, std::string unit) const;

  // Figures of a metric that was not recorded are left out. A unit is given where the figure is not in the
  // metric's own: memory in use as a part of all.
  void FromMetric(record::Metric metric, std::string what, std::optional<double> value,
                  std::string_view unit = "") const;
  void FromSeries(record::Metric metric, const record::Labels& labels, std::string what,
                  std::optional<double> value, std::string_view unit = "") const;

 private:
  std::vector<Evidence>* evidence_;
};

}  // namespace fullbore::diagnose
