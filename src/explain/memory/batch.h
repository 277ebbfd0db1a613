// Which of the memory that a training had is as large as its batch.
#pragma once

#include <cstddef>
#include <vector>

#include "explain/memory/history.h"
#include "explain/memory/snapshot.h"

namespace fullbore::memory {

// Of each life of the history. What is asked for in each step grows with the batch; what stays (weights, an optimizer's
// states) does not, nor what is as large as that: gradients, and temporaries of the optimizer. An activation may be as
// large as a weight by chance; it is told by the module whose forward pass asked for it, and its gradient by being given
// back within the backward pass, which has no line of Python.
std::vector<bool> GrowWithTheBatch(const MemorySnapshot& snapshot, const History& history, size_t events);

}  // namespace fullbore::memory
