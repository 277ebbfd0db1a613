#include "measure/collect/run_place.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/guarded_file.h"
#include "record/database.h"

namespace fullbore::collect {

namespace fs = std::filesystem;

namespace {

std::string FileOf(const std::string& directory, const std::string& run_id) {
  return directory + "/" + run_id + ".fbr";
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

Result<RunPlace> PlaceForRun(const std::string& directory, const std::string& run_id) {
  const std::string path = FileOf(directory, run_id);
  const auto made = record::MakeRunFile(path);
  if (!made) return made.error();
  return RunPlace{run_id, path, *made};
}

Result<std::string> MakeRunsDirectory(const std::string& wanted) {
  std::error_code error;
  const fs::path directory = fs::absolute(wanted, error);
  if (error) return ErrnoError("cannot find the working directory", error.value());
  if (auto made = MakeDirectory(directory, kPrivateDirectory); !made)
    return Error{made.error().code, made.error().text + " (the directory of runs)", ""};
  return directory.string();
}

void RemoveRunFile(const std::string& path) {
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(path + suffix, ignored);
}

std::string FromHere(const std::string& path) {
  std::error_code gone;  // the working directory may be
  const fs::path here = fs::current_path(gone);
  return gone ? path : fs::path(path).lexically_proximate(here).string();
}

}  // namespace fullbore::collect
