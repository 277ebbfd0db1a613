// What differs between two traces: kernels, copies and operators added, removed, or changed in number or
// time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "explain/analyze/table.h"
#include "timeline/device/trace.h"

namespace fullbore::analyze {

// One side: everything in its ranks' traces, summed by name.
class TraceSum {
 public:
  void Add(const timeline::DeviceTrace& trace);

  struct Sum {
    int64_t count = 0;
    int64_t ns = 0;
  };
  using Key = std::tuple<std::string, std::string, std::string>;  // "device" or "operator", class, name

  const std::map<Key, Sum>& sums() const { return sums_; }
  int64_t steps() const { return steps_; }  // that each rank marks; 0 where one marks none or they differ

 private:
  std::map<Key, Sum> sums_;
  int64_t steps_ = 0;
  int64_t traces_ = 0;
};

// By the change in time, largest first. Traces are compared per step if both mark their steps, as a whole
// otherwise; a note says which.
Table DiffOf(const TraceSum& before, const TraceSum& after);
const std::vector<Column>& ColumnsOfDiff();

// The same by class of kernel: a few rows that fit on a screen.
Table DiffOfClasses(const TraceSum& before, const TraceSum& after);

}  // namespace fullbore::analyze
