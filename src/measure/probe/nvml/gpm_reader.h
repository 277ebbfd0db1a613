// GPU performance monitoring (GPM), Hopper and newer: how much of the chip is busy, which utilisation does
// not show. Two samples of the GPU's counters, at least 100 ms apart, give the averages between them. The
// last sample is kept, so that the readings cover the whole time.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "measure/probe/nvml/nvml_session.h"

namespace fullbore::probe::nvml {

struct GpmSeries {
  uint32_t id;
  Metric metric;
  double factor;  // from NVML's unit to ours
};

class GpmReader {
 public:
  // Asks for `series` of one GPU.
  GpmReader(Session& session, const Gpu& gpu, const std::vector<GpmSeries>& series);
  ~GpmReader();
  GpmReader(const GpmReader&) = delete;
  GpmReader& operator=(const GpmReader&) = delete;

  bool supported() const { return supported_.on; }
  void Sample(int64_t t_ns, Gpu& gpu, Sink& sink);

 private:
  struct Quantity {
    uint32_t id;
    double factor;
    record::SeriesKey key;
    Switch asked;
  };

  static Return AskSupport(Library& library, const Gpu& gpu);

  Session& session_;
  Switch supported_;
  std::vector<Quantity> quantities_;
  GpmSample before_ = nullptr;
  GpmSample now_ = nullptr;
  int64_t before_ns_ = 0;  // 0: none
};

}  // namespace fullbore::probe::nvml
