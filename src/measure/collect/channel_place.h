// Where the channels of a run lie: in memory, because a training writes its ring through a map, and a page of a file on
// a disk that is full (copy on write: allocated or not) or of a network file system that fails raises SIGBUS there.
//
// What is large, the traces of the profiler, lies on the disk: /dev/shm is small in containers, and loader workers need
// it. Where there is no memory to be had, all lies on the disk, and the hook writes each record through instead.
//
// A directory is used only where nobody else could put another one in its place.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace fullbore::collect {

struct ChannelPlace {
  std::string channel;  // rings and texts
  std::string traces;   // the same directory where it is not in memory
};

// Both are made, private, with a note in them (leftovers.h).
Result<ChannelPlace> MakeChannelPlace(const std::string& runs_directory, const std::string& run_id);

// For tests: the directories to be tried, in this order.
Result<ChannelPlace> MakeChannelPlace(const std::string& run_id, const std::vector<std::string>& memory,
                                      const std::vector<std::string>& disks);

void Remove(const ChannelPlace& place);
void Beat(const ChannelPlace& place);

// What killed recorders left, wherever it may be. Returns the number of directories removed.
int RemoveLeftoverPlaces(const std::string& runs_directory);

// Whether nobody but this user and root can replace what we make in this directory.
bool IsSafePlace(const std::string& directory);

}  // namespace fullbore::collect
