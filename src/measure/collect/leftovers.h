// The directory of a run's channels is removed at the end of the run. A recorder that was killed leaves it
// behind; the next one, or `fullbore runs`, removes it.
//
// Several machines and containers may share a directory of runs, and neither a host name nor a pid tells
// whether another's recorder lives: cloned machines and pods share both. So a living recorder keeps touching
// a note in its directory; one whose note is old counts as dead.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace fullbore::collect {

inline constexpr int64_t kBeatNs = 5 * kNsPerSecond;
// Longer than a network file system may hang or its clock may be off.
inline constexpr int64_t kSilentNs = 600 * kNsPerSecond;

// "<run>.channel.<pid>.<letters>" beside the run file, accessible to this user only, with the note in it.
Result<std::string> MakeChannelDirectory(const std::string& runs_directory, const std::string& run_id);

// Records that the recorder of this directory lives; due every kBeatNs. One system call.
void Beat(const std::string& channel_directory);

// Removes the directories whose recorders have been silent for kSilentNs, unless this machine knows that the
// recorder, or a process that writes there, is alive. Returns how many were removed.
int RemoveLeftovers(const std::string& runs_directory);

}  // namespace fullbore::collect
