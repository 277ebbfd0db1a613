// input-bound by fetches that wait for something rather than compute: storage, a network, a lock, a sleep.
#pragma once

#include "explain/diagnose/judge/input_bound/fetch.h"

namespace fullbore::diagnose {

// What ends the wait, with its gain; and what more workers would bring where these waits may overlap. A disk is named
// only where this run's own processes read from one.
void BlameWaiting(Input& input);

// Whether what the run's own processes read can be what fetches wait for that are blocked for so long: in threads, on
// average. Nothing where their reads were not recorded.
std::optional<bool> ReadsFromDisk(const View& view, double blocked_threads);

}  // namespace fullbore::diagnose
