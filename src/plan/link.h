// What it costs to exchange gradients among more or fewer devices: a ring all-reduce (P. Patarasuk and X. Yuan,
// "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009), in which each of n devices sends and
// receives 2 (n - 1) / n of the bytes; DistributedDataParallel begins it bucket by bucket during the backward pass (S. Li
// et al., "PyTorch Distributed", VLDB 2020).
#pragma once

#include <array>
#include <string>

#include "explain/replay/change/change.h"
#include "explain/replay/predict.h"

namespace fullbore::plan {

// Of the bytes, what each device of a ring sends; 0 for one alone.
double RingPart(int64_t gpus);

// Between devices, of each in one direction; bytes a second, by outlook: cautious, expected, hopeful.
using Bandwidth = std::array<double, 3>;

// What of the exchange is not hidden behind a backward pass that takes so long: where nothing was recorded of it. At worst
// all of it, at best what is longer than the pass; expected is that the last bucket remains at least.
replay::Prediction ExposedNs(double gradient_bytes, int64_t gpus, const Bandwidth& bandwidth,
                             double backward_ns);

// Recorded collectives of gradients that take so many times as long, by outlook.
class OtherLink : public replay::Change {
 public:
  explicit OtherLink(std::array<double, 3> factor) : factor_(factor) {}
  std::string_view id() const override { return "link"; }
  std::string_view does() const override { return "gradients are exchanged among another number of devices"; }
  std::string_view assumes() const override { return "a ring, and collectives bound by their bytes"; }
  replay::Cost cost() const override { return replay::Cost::kNothing; }
  std::optional<std::string> WhyNot(const record::StepGraph& graph) const override;
  double Apply(replay::Outlook outlook, record::StepGraph& graph) const override;

 private:
  std::array<double, 3> factor_;
};

}  // namespace fullbore::plan
