// Pressure stall information (PSI): the fraction of the time in which some task, or all of them, stood still
// for lack of CPU, disk or memory. Taken from the `total=` counters, so that it is exact for the interval;
// the kernel's own averages look back 10 s and more.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "measure/probe/counter.h"
#include "measure/probe/probe.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

// The pressure files of the machine or of a cgroup, as series.
class PressureFiles {
 public:
  enum class Scope : uint8_t { kMachine, kCgroup };
  PressureFiles(const std::string& directory, Scope scope);

  // False if none of them could be read.
  bool Sample(int64_t t_ns, Sink& sink);

 private:
  struct Stall {
    std::string kind;  // "some", "full"
    Counter total_us;
    record::SeriesKey key;
  };
  struct File {
    TextFile text;
    std::vector<Stall> stalls;
  };
  std::vector<File> files_;
};

class PressureProbe : public Probe {
 public:
  explicit PressureProbe(const Machine& machine);

  std::string_view name() const override { return "pressure"; }
  Rate rate() const override { return Rate::kSlow; }
  void Sample(int64_t t_ns, Sink& sink) override;

 private:
  PressureFiles files_;
  bool said_ = false;
};

}  // namespace fullbore::probe
