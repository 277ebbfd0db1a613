// The part of sync-bound that needs no record of the device.
#pragma once

#include <optional>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Whether this share is the host's wait for a device that computes, as seen from the host: JAX waits for nothing else,
// and a device that is busy nearly all the time leaves nothing else to wait for.
bool IsWaitForComputation(const View& view, record::Share share);

// Where the training thread only launches the step and then waits for its result, what the host does until it launches
// the next one is time in which nothing computes. Only of frameworks whose steps run beside the host on every device
// (JAX): elsewhere a wait may be for work that nobody could have launched ahead.
std::optional<Finding> SyncSeenFromHost(const View& view);

}  // namespace fullbore::diagnose
