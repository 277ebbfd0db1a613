// Adds evidence to a finding, one figure per call. The function's name says where the figure comes from; a
// metric's unit, source and series come from the table of metrics.
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
  // About the steps of a rank: from the trace where device activity was recorded, else from the hook.
  void FromSteps(const RankView& rank, std::string what, double value, std::string unit) const;
  // Calculated by the replay of the recorded steps.
  void FromReplay(std::string what, double value, std::string unit) const;
  // A fact about the machine that is not a series, such as the number of cores.
  void FromMachine(std::string what, double value, std::string unit) const;

  // Leaves out a metric that was not recorded. Pass a unit where the figure is not in the metric's own:
  // memory in use as a ratio of the total.
  void FromMetric(record::Metric metric, std::string what, std::optional<double> value,
                  std::string_view unit = "") const;
  void FromSeries(record::Metric metric, const record::Labels& labels, std::string what,
                  std::optional<double> value, std::string_view unit = "") const;

 private:
  std::vector<Evidence>* evidence_;
};

}  // namespace fullbore::diagnose
