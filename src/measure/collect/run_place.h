// Where a run is kept: a name that no other run has, and its file.
#pragma once

#include <string>

#include "base/result.h"

namespace fullbore::collect {

struct RunPlace {
  std::string run_id;
  std::string path;          // of the run file, absolute; it is there, empty where it is new
  bool is_new_file = false;  // made here
};

// A run of its own: called `wanted`, or "wanted-2" and so on where there is such a run. The file is made as it
// is named (O_EXCL), so that runs which are started at once never get the same.
Result<RunPlace> PlaceForNewRun(const std::string& directory, const std::string& wanted);

// The run of this id, new or existing.
Result<RunPlace> PlaceForRun(const std::string& directory, const std::string& run_id);

// The directory of runs, absolute; a private one where it is missing.
Result<std::string> MakeRunsDirectory(const std::string& wanted);

// Removes a run file and what SQLite keeps beside it.
void RemoveRunFile(const std::string& path);

// A path as people read it: seen from the working directory, where there is one. By its letters: a link stays
// a link.
std::string FromHere(const std::string& path);

}  // namespace fullbore::collect
