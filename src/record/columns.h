// Compressed columns of integers: how samples, steps and sketches are stored in the run file.
//
// Format (all numbers LEB128 varints, the whole compressed as one zstd frame):
//   blob   := count of columns, column...
//   column := n, flag, [n presence bits in ceil(n / 8) bytes where flag = 1], delta...
//   delta  := zigzag(value - value before it), for the present values only
// Neighbouring readings differ little, so most deltas take one byte before zstd sees them. Rejected: one SQL
// row per value (30 times the size), Gorilla XOR on floats (larger than scaled integers on sensor readings).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fullbore::record {

struct Column {
  std::vector<int64_t> values;
  std::vector<bool> present;  // empty: all are; else as long as `values`, whose absent entries mean nothing
};

std::string EncodeColumns(const std::vector<Column>& columns);
Result<std::vector<Column>> DecodeColumns(std::string_view bytes);

}  // namespace fullbore::record
