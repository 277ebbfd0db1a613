// input-bound where the script feeds its steps without a DataLoader: from a queue that a thread or process of
// its own fills, or from a generator or iterator that the training loop goes through.
#pragma once

#include <optional>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Completes `finding`, which has its share and its severity; nothing where no sample saw such a feed. There
// are no fetches to replay: the gain is that of removing the wait, as far as cores for it are idle.
std::optional<Finding> FromOwnFeed(const View& view, Finding finding, Diagnosis& diagnosis);

}  // namespace fullbore::diagnose
