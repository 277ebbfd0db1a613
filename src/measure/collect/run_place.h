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

// The run with this id, new or existing. With a `node` it is on several machines, and its file is this one's.
Result<RunPlace> PlaceForRun(const std::string& directory, const std::string& run_id,
                             const std::string& node = "");

// Where runs are kept unless somebody says otherwise.
inline constexpr char kDefaultRunsDirectory[] = ".fullbore/runs";

// Whether a directory of runs is ours; it need not exist yet. The names of a run's files can be guessed, so it is an error
// (kPermission) where everybody can write to it or could have put it there, by a link as well. A team may share one, by a
// group, if it is named: the usual one belongs to this user or root.
Result<void> CheckRunsDirectory(const std::string& directory);

// The directory of runs, absolute; created as a private one if missing. An error where it is not ours.
Result<std::string> MakeRunsDirectory(const std::string& wanted);

// Removes a run file and what SQLite keeps beside it.
void RemoveRunFile(const std::string& path);

// A path for people to read: relative to the working directory, if there is one. Purely textual:
// symbolic links are not resolved.
std::string FromHere(const std::string& path);

}  // namespace fullbore::collect
