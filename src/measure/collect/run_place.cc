#include "measure/collect/run_place.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/guarded_file.h"
#include "base/text.h"
#include "base/trusted_path.h"
#include "record/database.h"
#include "record/run_reader.h"

namespace fullbore::collect {

namespace fs = std::filesystem;

namespace {

constexpr char kChooseAnother[] = "choose a directory with -o DIR";

std::string FileOf(const std::string& directory, const std::string& run_id) {
  return directory + "/" + run_id + std::string(record::kRunSuffix);
}

Error NotOurs(const std::string& directory, const std::string& why, const std::string& hint) {
  return {
      ErrorCode::kPermission,
      fmt::format("'{}' is not used for runs, since others could lead them elsewhere: {}", directory, why),
      hint};
}

// A directory of runs that nobody named, beside whatever the working directory holds: somebody who may write there may
// have made it first.
Result<void> CheckOwner(const std::string& directory) {
  for (fs::path part = directory; !part.empty(); part = part.parent_path()) {
    struct stat entry {};
    if (lstat(part.c_str(), &entry) != 0 || entry.st_uid == geteuid() || entry.st_uid == 0) continue;
    return NotOurs(directory,
                   fmt::format("'{}' belongs to the user {}", part.string(), UserName(entry.st_uid)),
                   kChooseAnother);
  }
  return {};
}

}  // namespace

Result<RunPlace> PlaceForNewRun(const std::string& directory, const std::string& wanted) {
  std::string run_id = wanted;
  for (int n = 2;; ++n) {
    auto place = PlaceForRun(directory, run_id);
    if (!place || place->is_new_file) return place;
    run_id = fmt::format("{}-{}", wanted, n);
  }
}

Result<RunPlace> PlaceForRun(const std::string& directory, const std::string& run_id,
                             const std::string& node) {
  std::string path = FileOf(directory, run_id);
  std::error_code ignored;
  if (!node.empty()) {
    if (fs::is_regular_file(path, ignored)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the run '{}' is of one machine: '{}' is a file", run_id, path),
                   "choose another name with --run ID"};
    }
    if (auto made = MakeDirectory(path, kPrivateDirectory); !made) return made.error();
    path += "/" + node + std::string(record::kRunSuffix);
  } else if (fs::is_directory(path, ignored)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("the run '{}' is on several machines", run_id),
                 "name this one with --node NAME, or choose another name with --run ID"};
  }
  const auto made = record::MakeRunFile(path);
  if (!made) return made.error();
  return RunPlace{run_id, path, *made};
}

Result<void> CheckRunsDirectory(const std::string& directory) {
  if (directory == kDefaultRunsDirectory) {
    if (auto checked = CheckOwner(directory); !checked) return checked;
  }
  const auto real = TrustedPath(directory, Others::kChosen);
  if (!real) return NotOurs(directory, real.error().text, kChooseAnother);
  // Not even one where nobody removes what is another's: the names of a run's files can be guessed and taken before.
  struct stat entry {};
  if (stat(real->c_str(), &entry) == 0 && (entry.st_mode & S_IWOTH) != 0) {
    return NotOurs(directory,
                   fmt::format("everybody can write to it (`chmod o-w {}` ends that)", ShellQuote(directory)),
                   kChooseAnother);
  }
  return {};
}

Result<std::string> MakeRunsDirectory(const std::string& wanted) {
  std::error_code error;
  const fs::path directory = fs::absolute(wanted, error);
  if (error) return ErrnoError("cannot find the working directory", error.value());
  // Before it is made, so that nothing is made where a planted link leads; then with all its parts.
  if (auto ours = CheckRunsDirectory(wanted); !ours) return ours.error();
  if (auto made = MakeDirectory(directory, kPrivateDirectory); !made)
    return Error{made.error().code, made.error().text + " (the directory of runs)", ""};
  if (auto ours = CheckRunsDirectory(wanted); !ours) return ours.error();
  return directory.string();
}

void RemoveRunFile(const std::string& path) {
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(path + suffix, ignored);
  const fs::path folder =
      fs::path(path).parent_path();  // of a run on several machines, if this was all of it
  if (folder.extension() == record::kRunSuffix) fs::remove(folder, ignored);
}

std::string FromHere(const std::string& path) {
  std::error_code gone;  // the working directory may be
  const fs::path here = fs::current_path(gone);
  return gone ? path : fs::path(path).lexically_proximate(here).string();
}

}  // namespace fullbore::collect
