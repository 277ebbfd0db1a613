// input-bound by samples that are put together one by one: by a collate function, or as slices of tensors that a
// dataset has in memory, of which a whole batch would be one operation.
#pragma once

#include "explain/diagnose/judge/input_bound/fetch.h"

namespace fullbore::diagnose {

// The fetch spends its time in collate.
void BlameCollate(Input& input);

// Where the samples were seen to be slices of tensors or arrays in memory, and fetching whole batches is sure to gain:
// completes the finding. False where it is another cause's turn: a fetch that mostly waits is none of calls.
bool BlameSlices(Input& input);

}  // namespace fullbore::diagnose
