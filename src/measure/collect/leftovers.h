// The directories of a run's channels (channel_place.h) are removed at the end of the run. A recorder that was killed
// leaves them behind; the next one, or `fullbore runs`, removes them.
//
// Several machines and containers may share a directory of runs, and neither a host name nor a pid tells
// whether another's recorder lives: cloned machines and pods share both. So a living recorder keeps touching
// a note in its directory; one whose note is old counts as dead. Only a directory in memory is known to be of this
// kernel: there, who is known to be dead need not have been silent.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace fullbore::collect {

inline constexpr int64_t kBeatNs = 5 * kNsPerSecond;
// Longer than a network file system may hang or its clock may be off.
inline constexpr int64_t kSilentNs = 600 * kNsPerSecond;

// "<run>.channel.<pid>.<letters>" in that directory, accessible to this user only, with the note in it.
Result<std::string> MakeChannelDirectory(const std::string& place, const std::string& run_id);

// Records that the recorder of this directory lives; due every kBeatNs. One system call. A directory that was removed
// from memory (systemd does that when a user has logged out: RemoveIPC) is made again, for processes yet to come.
void Beat(const std::string& channel_directory);

// Removes the directories whose recorders have been silent for kSilentNs, unless this machine knows that the
// recorder, or a process that writes there, is alive; in memory, as soon as both are known to be dead. Returns how many
// were removed.
int RemoveLeftovers(const std::string& place);

// Whether files here are memory of this kernel (tmpfs): space that is allocated can be written to.
bool IsInMemory(const std::string& directory);

}  // namespace fullbore::collect
