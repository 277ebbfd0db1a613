// Where a trial may write: a scratch directory that is removed with this object, and what is there to outlive a run: the
// caches of downloads and compilers, and the log that its throughput is read from. All else is refused by the kernel
// (Landlock), and in Python processes led into the scratch directory before (the hook's steer/outputs.py).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/temporary_directory.h"

namespace fullbore::tune {

class TrialPlaces {
 public:
  // `log` may be empty, or a file that does not exist yet: then it is made, and removed again if nothing was written.
  static Result<TrialPlaces> Make(const std::string& log);
  TrialPlaces(TrialPlaces&& other) noexcept;
  TrialPlaces& operator=(TrialPlaces&&) = delete;
  ~TrialPlaces();

  const UniqueFd& output() const { return output_; }  // what the command prints
  std::string output_path() const { return directory_.path() + "/output"; }
  // Directories, and files that exist.
  const std::vector<std::string>& writable() const { return writable_; }
  std::map<std::string, std::string> Environment() const;

 private:
  TrialPlaces(TemporaryDirectory directory, UniqueFd output)
      : directory_(std::move(directory)), output_(std::move(output)) {}
  Result<void> MakeTemporary();
  Result<void> AllowLog(const std::string& log);
  void AllowCaches();
  void AllowCache(const std::string& path);
  std::string files() const { return directory_.path() + "/trial"; }

  TemporaryDirectory directory_;
  std::optional<TemporaryDirectory> short_;  // where the usual place for temporary files has too long a name
  UniqueFd output_;
  std::string temporary_;
  std::vector<std::string> writable_;
  std::string made_log_;  // empty if it was there, or none was asked for
};

}  // namespace fullbore::tune
