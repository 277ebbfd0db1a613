// What stands around an operator on its stream: chains of operators over the same elements, normalisations
// and attention that are made of single operators, small kernels around a large one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "explain/roofline/work.h"
#include "record/roofline.h"

namespace fullbore::roofline {

// A kind of call as the roofline sums them up: one operator with one shape.
struct ChainRow {
  std::string_view name;
  timeline::OperatorKind kind = timeline::OperatorKind::kNone;
  Work work;
  std::string_view shape;
};

// One call on a stream. `row` is an index into the rows; kNoRow stands for anything that ends a chain: an
// unknown kernel, a collective.
inline constexpr uint32_t kNoRow = ~0U;
struct ChainLink {
  uint32_t row = kNoRow;
  int64_t begin_ns = 0, end_ns = 0;  // from its first kernel to its last
  int64_t device_ns = 0;             // of its kernels
};

// For each row, how much of its device time stood in which surroundings.
struct Surroundings {
  int64_t attention_ns = 0, normalisation_ns = 0, small_ns = 0, chain_ns = 0;
  int64_t chain_length = 0;  // of the longest
};

struct Chains {
  std::vector<Surroundings> rows;
  std::vector<record::RooflineChain> found;  // by device time
};

// `streams`: for each the calls in the order in which they ran. `bytes_per_s` of the device, where known.
Chains FindChains(const std::vector<ChainRow>& rows, const std::vector<std::vector<ChainLink>>& streams,
                  std::optional<double> bytes_per_s);

}  // namespace fullbore::roofline
