// Whose line asked for memory: of a stack of Python and C++ functions, the innermost that is the user's own.
#pragma once

#include <string>

#include "explain/memory/snapshot.h"

namespace fullbore::memory {

// "train.py:42 in forward": the innermost line outside of installed packages, else the innermost in Python; "" where a
// snapshot was taken without stacks.
std::string PlaceOf(const MemorySnapshot& snapshot, StackIndex stack);

}  // namespace fullbore::memory
