// The request that a device had no room for, where the run ended by that.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "record/recording.h"

namespace fullbore::diagnose {

// Bytes, as far as torch said them.
struct RefusedMemory {
  std::string place;  // "train.py:40"; may be empty
  std::optional<double> asked, capacity, free;
  std::optional<double> allocated;    // in the program's tensors
  std::optional<double> unallocated;  // that PyTorch keeps beside them
};

// From the hook's message (note_full_device of hook/core/process.py).
std::optional<RefusedMemory> RefusedMemoryOf(const record::Stage& stage);

// From what torch.OutOfMemoryError says, which is the only place where it says it: CUDACachingAllocator.cpp of PyTorch
// 2.9, which was seen, and an older form. "train.py:40: CUDA out of memory. Tried to allocate 24.00 MiB. GPU 0 has ..."
RefusedMemory ParseRefusedMemory(std::string_view said);

}  // namespace fullbore::diagnose
