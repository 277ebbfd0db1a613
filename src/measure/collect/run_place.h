// Where a run is stored: a name that no other run has, and its file.
#pragma once

#include <string>

#include "base/result.h"

namespace fullbore::collect {

struct RunPlace {
  std::string run_id;
  std::string path;          // of the run file, absolute; it is there, empty where it is new
  bool is_new_file = false;  // made here
};

// A run of its own: named `wanted`, or "wanted-2" and so on if that exists. Choosing the name creates the
// file (O_EXCL), so that runs started at the same time never share one.
Result<RunPlace> PlaceForNewRun(const std::string& directory, const std::string& wanted);

// The run with this id, new or existing.
Result<RunPlace> PlaceForRun(const std::string& directory, const std::string& run_id);

// The directory of runs, absolute; created as a private one if missing.
Result<std::string> MakeRunsDirectory(const std::string& wanted);

// Removes a run file and what SQLite keeps beside it.
void RemoveRunFile(const std::string& path);

// A path for people to read: relative to the working directory, if there is one. Purely textual:
// symbolic links are not resolved.
std::string FromHere(const std::string& path);

}  // namespace fullbore::collect
