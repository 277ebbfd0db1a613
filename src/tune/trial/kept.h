// What `tune` has measured so far, on disk, so that it can be resumed after an interruption: a line of JSON per trial,
// after one that names the command. Rewritten after each trial, so that it is complete at any moment.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tune/trial/trial.h"

namespace fullbore::tune {

class Kept {
 public:
  // Of this command in this working directory, beside the runs. Secrets in the command are masked before they are
  // stored.
  Kept(const std::string& runs_directory, const std::string& working_directory,
       const std::vector<std::string>& command);

  const std::string& path() const { return path_; }
  // What an earlier search left; an error if there is nothing, or it cannot be read. Lines that are not trials are
  // skipped.
  Result<void> Load();
  // The next of the loaded trials with these settings, in the order in which they were made: among those of proofs, or
  // among those of the search.
  std::optional<Trial> Take(const Settings& settings, bool proves);
  bool Holds(const Settings& settings, bool proves) const;  // whether Take() would give one
  Result<void> Add(const Trial& trial);
  Result<void> Add(const std::vector<Trial>& trials);  // all of them, or none

 private:
  std::vector<Trial>::const_iterator Next(const Settings& settings, bool proves) const;

  std::string path_;
  std::string text_;
  std::vector<Trial> loaded_;
};

}  // namespace fullbore::tune
