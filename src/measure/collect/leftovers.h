// The directory of a run's channels is removed at the run's end. A recorder that was killed leaves it; the
// next one, or `fullbore runs`, clears it away.
//
// Several machines and containers may share a directory of runs, and none of them can tell by a host's name or
// a process's number whether the others' recorders live: cloned machines and pods have the same. So a living
// recorder touches a note in its directory again and again; one whose note is old is taken for dead.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace fullbore::collect {

inline constexpr int64_t kBeatNs = 5 * kNsPerSecond;
// Longer than a file system of a network hangs or a clock of one is wrong.
inline constexpr int64_t kSilentNs = 600 * kNsPerSecond;

// "<run>.channel.<pid>.<letters>" beside the run file, which only this user may enter, with the note in it.
Result<std::string> MakeChannelDirectory(const std::string& runs_directory, const std::string& run_id);

// Says that the recorder of this directory lives; due every kBeatNs. One system call.
void Beat(const std::string& channel_directory);

// Removes those whose recorders have been silent for kSilentNs, unless this machine knows that the recorder, or
// a process that writes there, lives. Returns how many were removed.
int RemoveLeftovers(const std::string& runs_directory);

}  // namespace fullbore::collect
