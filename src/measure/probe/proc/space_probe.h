// How full the disks are: the local file systems that can be written to. Those over the network are left out: asking a
// server that does not answer would keep the recorder waiting.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/probe/probe.h"
#include "measure/probe/proc/mounts.h"

namespace fullbore::probe {

// One mount of each local file system in which a training could keep files, with the shortest path; at most 16.
std::vector<Mount> LocalFileSystems(const std::vector<Mount>& mounts);

class SpaceProbe : public Probe {
 public:
  explicit SpaceProbe(const Machine& machine) : root_(machine.root) {}

  std::string_view name() const override { return "space"; }
  Rate rate() const override { return Rate::kSlow; }
  void Sample(int64_t t_ns, Sink& sink) override;

 private:
  struct Place {
    std::string path;
    record::SeriesKey used, total;
  };

  const std::string root_;
  std::vector<Place> places_;
  int64_t listed_ns_ = 0, sampled_ns_ = 0;
};

}  // namespace fullbore::probe
