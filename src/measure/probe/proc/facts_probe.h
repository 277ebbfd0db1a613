// Facts about the machine that do not change: name, kernel, processor, cores, memory, limits. Reported once.
#pragma once

#include <string>

#include "measure/probe/probe.h"

namespace fullbore::probe {

class FactsProbe : public Probe {
 public:
  explicit FactsProbe(const Machine& machine) : root_(machine.root) {}

  std::string_view name() const override { return "facts"; }
  Rate rate() const override { return Rate::kSlow; }
  void Sample(int64_t t_ns, Sink& sink) override;

 private:
  void SayCpu(Sink& sink) const;
  void SayLimits(Sink& sink) const;

  const std::string root_;
  bool said_ = false;
};

}  // namespace fullbore::probe
