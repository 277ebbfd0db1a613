// Where a device's memory went when its process held most: by the objects (held_memory.h), the allocator's figures and
// NVML's.
#pragma once

#include <optional>

#include "explain/diagnose/held_memory.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Of the rank whose device is fullest; nothing without a device, or where its size is not known.
std::optional<MemoryBudget> MemoryBudgetOf(const View& view);

// Of that rank.
std::optional<HeldMemory> FullestRank(const View& view);

// The most that its program's tensors took, and PyTorch of the driver.
double PeakOf(const View& view, const HeldMemory& held);
double ReservedOf(const View& view, const HeldMemory& held);

}  // namespace fullbore::diagnose
