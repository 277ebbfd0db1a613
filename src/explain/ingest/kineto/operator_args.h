// The tensors and arguments of an operator, from the texts that the profiler writes with record_shapes=True:
//
//   "Input Dims": [[1024], [8944, 1024], [[4, 1, 768], [4, 196, 768]], []]
//   "Input type": ["float", "c10::BFloat16", "TensorList", "Scalar"]
//   "Input Strides": as the dimensions; "Concrete Inputs": ["", "", "", "[2, 2]"]
//
// Since they come from a file that anybody may have written, nothing is believed: numbers of inputs and
// dimensions, their sizes and products are bounded, and what is beyond is an argument without a tensor.
#pragma once

#include <cstdint>
#include <string_view>

#include "explain/ingest/kineto/event.h"
#include "timeline/device/operators.h"

namespace fullbore::ingest::kineto {

// As they stand in the text, in a window (json_window.h).
struct OperatorArgs {
  std::string_view dims, types, strides, concretes;

  void Take(std::string_view key, std::string_view value);
};

// The bounds. A tensor of 2^50 elements fits into no machine; a product of two such sizes fits into 128 bits,
// and their doubles into a double.
inline constexpr size_t kMaxInputs = 64, kMaxDimensions = 12, kMaxConcreteBytes = 48;
inline constexpr int64_t kMaxElements = int64_t{1} << 50;

timeline::OperatorShape ParseOperator(const OperatorArgs& args, timeline::NameId name,
                                      timeline::OperatorKind kind);

// Takes operators one by one into the log. Equal texts are recognised without being parsed again.
class OperatorReader {
 public:
  explicit OperatorReader(timeline::OperatorLog* log) : log_(log) {}

  struct Call {
    timeline::NameId name;
    timeline::OperatorKind kind;
    int64_t begin_ns, end_ns;
    uint16_t thread;
  };
  void Take(const Call& call, std::string_view args);

 private:
  timeline::OperatorLog* const log_;
};

}  // namespace fullbore::ingest::kineto
