// The machine for `top`: the recorder's probes, their last readings only, and the busiest processes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "measure/probe/registry.h"
#include "top/state.h"

namespace fullbore::top {

class MachineReader {
 public:
  explicit MachineReader(const std::string& root);  // "" on a real machine
  ~MachineReader();

  // Once a second. Rates are known from the second call on.
  Machine Read(int64_t now_ns);

 private:
  class LastReadings;
  struct Ticks {
    uint64_t cpu = 0, start = 0;
    int64_t t_ns = 0;
  };
  std::vector<Process> BusiestProcesses(int64_t now_ns);

  std::string proc_;
  probe::ProbeSet probes_;
  std::unique_ptr<LastReadings> last_;
  std::map<int64_t, Ticks> ticks_;
};

}  // namespace fullbore::top
