// Where one trial writes: a scratch directory that is removed with this object. In a view of its own (the usual case) the
// trial writes wherever it likes, and all of it lies here. Behind a guard, Python processes are led here
// (the hook's steer/outputs.py), and the kernel refuses everything else but the caches of downloads and compilers and the
// log that the throughput is read from.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/temporary_directory.h"
#include "measure/collect/command.h"
#include "measure/isolate/scratch.h"
#include "tune/trial/shelter.h"

namespace fullbore::tune {

class TrialPlaces {
 public:
  // `log` may be empty, or a file that does not exist yet: behind a guard it is then made, and removed again if nothing
  // was written.
  static Result<TrialPlaces> Make(const Shelter& shelter, const std::string& log);
  TrialPlaces(TrialPlaces&& other) noexcept;
  TrialPlaces& operator=(TrialPlaces&&) = delete;
  ~TrialPlaces();

  std::string output_path() const { return scratch_.path() + "/output"; }  // what the command prints
  // Where what the trial writes to the log is found, once the trial has been started.
  std::string LogPath() const;
  collect::Command::Apart Apart(const std::vector<std::string>& command) const;
  std::map<std::string, std::string> Environment() const;
  // Why the trial must end, if it wrote too much. Looks at every file that it wrote.
  std::string WroteTooMuch() const;

 private:
  TrialPlaces(isolate::Scratch scratch, UniqueFd output, const Shelter& shelter)
      : scratch_(std::move(scratch)), output_(std::move(output)), shelter_(shelter) {}
  Result<void> LayOut();  // behind a guard, and without any protection
  Result<void> MakeTemporary();
  Result<void> AllowLog();
  bool has_view() const { return shelter_.found.protection == isolate::Protection::kView; }
  std::string files() const { return scratch_.path() + "/trial"; }

  isolate::Scratch scratch_;
  std::optional<TemporaryDirectory> short_;  // where the usual place for temporary files has too long a name
  UniqueFd output_;
  Shelter shelter_;
  std::string log_;  // absolute; empty if there is none
  std::string temporary_;
  std::vector<std::string> writable_;  // behind a guard
  std::string made_log_;               // empty if it was there, or none was asked for
};

}  // namespace fullbore::tune
