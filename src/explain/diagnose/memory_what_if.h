// What a run would need of its device's memory with another batch, or with sequences of another length; and which batch
// would have fitted where the run ended because one did not.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/refused_memory.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

struct MemoryChange {
  std::string text;              // "batch=64,seq=4096"
  std::optional<int64_t> rows;   // of a batch
  std::optional<int64_t> width;  // tokens of a row
};

// "batch=64" or "seq=4096"; nothing where it is neither, an error where its number is none.
Result<bool> ReadMemoryChange(std::string_view text, MemoryChange& change);

MemoryWhatIf WhatIfOf(const record::Recording& recording, const std::string& stage,
                      const MemoryChange& change);

// Of the batch that ended the run.
struct FittingBatch {
  std::string of;    // "4 rows of 646 tokens"
  int64_t rows = 0;  // of the same width, that would have fitted; less than it has, 0 where not one would
  std::optional<int64_t> width;  // or of as many rows; nothing where they are no tokens
  size_t sizes = 0;              // of batches that it rests on
};

// Nothing where too few different batches were seen to refute a line, or none lies through their peaks.
std::optional<FittingBatch> FittingBatchOf(const View& view, const RefusedMemory& refused);

}  // namespace fullbore::diagnose
