// Where a training that computes on the CPU spends time on work that its model may not need, as the operators of a few
// of its steps show it. Of the thread that steps; times are sums over these steps, of operators without those that they
// call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fullbore::record {

struct HostWork {
  int64_t steps = 0;
  int64_t stepped_ns = 0;  // of the clock

  // A table of which a step uses a few rows, while its gradient and its update are of all rows.
  struct Table {
    int64_t rows = 0, columns = 0;
    double used = 0;  // rows a step, at most
    int64_t ns = 0;   // of all that goes over the whole table
  };
  std::vector<Table> tables;  // by ns, largest first

  // The backward pass of parts of a tensor that are taken, or written, one by one: each is a pass over the whole tensor.
  struct Parts {
    std::string node;  // of autograd: "SelectBackward0"
    int64_t count = 0;
    int64_t elements = 0;  // of the whole tensor
    int64_t ns = 0;
  };
  std::vector<Parts> parts;  // by ns, largest first

  int64_t float64_ns = 0;  // arithmetic on double precision, where there is enough of it to matter
  int64_t relaid_ns = 0;   // copies that only change the order of a tensor's elements in memory
  int64_t relaid = 0;      // their number
};

}  // namespace fullbore::record
