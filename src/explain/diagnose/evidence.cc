#include "explain/diagnose/evidence.h"

#include <utility>

namespace fullbore::diagnose {

using record::Metric;

namespace {

Evidence Figure(std::string what, double value, std::string unit, std::string source) {
  return {std::move(what), value, std::move(unit), std::move(source), "", {}, {}};
}

}  // namespace

void EvidenceBuilder::FromHook(std::string what, double value, std::string unit) const {
  evidence_->push_back(Figure(std::move(what), value, std::move(unit), "hook"));
}

void EvidenceBuilder::FromTrace(std::string what, double value, std::string unit) const {
  evidence_->push_back(Figure(std::move(what), value, std::move(unit), "trace"));
}

void EvidenceBuilder::FromSteps(const RankView& rank, std::string what, double value,
                                std::string unit) const {
  if (rank.info->device_activity)
    FromTrace(std::move(what), value, std::move(unit));
  else
    FromHook(std::move(what), value, std::move(unit));
}

void EvidenceBuilder::FromReplay(std::string what, double value, std::string unit) const {
  evidence_->push_back(Figure(std::move(what), value, std::move(unit), "replay"));
}

void EvidenceBuilder::FromMachine(std::string what, double value, std::string unit) const {
  evidence_->push_back(Figure(std::move(what), value, std::move(unit), "proc"));
}

void EvidenceBuilder::FromMetric(Metric metric, std::string what, std::optional<double> value,
                                 std::string_view unit) const {
  FromSeries(metric, {}, std::move(what), value, unit);
}

void EvidenceBuilder::FromSeries(Metric metric, const record::Labels& labels, std::string what,
                                 std::optional<double> value, std::string_view unit) const {
  if (!value) return;
  const record::MetricInfo& info = record::InfoOf(metric);
  Evidence figure =
      Figure(std::move(what), *value, std::string(unit.empty() ? info.unit : unit), std::string(info.source));
  figure.series = record::LabelledName(record::KeyOf(metric, labels));
  evidence_->push_back(std::move(figure));
}

}  // namespace fullbore::diagnose
