#include "tune/trial_places.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/guarded_file.h"

namespace fullbore::tune {

namespace fs = std::filesystem;

namespace {

constexpr std::array kSystems = {"/dev", "/proc", "/sys"};
constexpr std::array kCaches = {"XDG_CACHE_HOME",          "HF_HOME",          "TORCH_HOME",
                                "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "KERAS_HOME"};
// Of the directory for temporary files: a socket's path takes at most 107 characters, of which multiprocessing's own part is
// up to 40.
constexpr size_t kLongestTemporary = 64;

std::string Home() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return home;
  const passwd* user = getpwuid(getuid());
  return user == nullptr ? "" : user->pw_dir;
}

// Without a slash at the end; "" for the root directory.
std::string Absolute(const std::string& path) {
  std::error_code unknown;
  std::string absolute = fs::absolute(path, unknown).lexically_normal().string();
  while (absolute.ends_with('/')) absolute.pop_back();
  return absolute;
}

}  // namespace

Result<TrialPlaces> TrialPlaces::Make(const std::string& log) {
  auto directory = TemporaryDirectory::Make();
  if (!directory) return directory.error();
  auto output = CreateFile(directory->path() + "/output", kPrivateFile);
  if (!output) return output.error();
  TrialPlaces places(std::move(*directory), std::move(*output));
  if (auto made = MakeDirectory(places.files(), kPrivateDirectory); !made) return made.error();
  places.writable_.push_back(places.files());
  if (auto made = places.MakeTemporary(); !made) return made.error();
  places.writable_.insert(places.writable_.end(), kSystems.begin(), kSystems.end());
  places.AllowCaches();
  if (log.empty()) return places;
  if (auto allowed = places.AllowLog(log); !allowed) return allowed.error();
  return places;
}

TrialPlaces::TrialPlaces(TrialPlaces&& other) noexcept
    : directory_(std::move(other.directory_)),
      short_(std::move(other.short_)),
      output_(std::move(other.output_)),
      temporary_(std::move(other.temporary_)),
      writable_(std::move(other.writable_)),
      made_log_(std::exchange(other.made_log_, {})) {}

Result<void> TrialPlaces::MakeTemporary() {
  temporary_ = files() + "/tmp";
  if (temporary_.size() <= kLongestTemporary) return MakeDirectory(temporary_, kPrivateDirectory);
  auto made = TemporaryDirectory::MakeIn("/tmp");
  if (!made) return made.error();
  short_.emplace(std::move(*made));
  temporary_ = short_->path();
  writable_.push_back(temporary_);
  return {};
}

Result<void> TrialPlaces::AllowLog(const std::string& log) {
  const std::string path = Absolute(log);
  auto made = CreateFileIfMissing(path, kOrdinaryFile);
  if (!made) return made.error();
  if (*made) made_log_ = path;
  writable_.push_back(path);
  return {};
}

void TrialPlaces::AllowCaches() {
  for (const char* name : kCaches) {
    if (const char* path = std::getenv(name); path != nullptr && *path != '\0') AllowCache(path);
  }
  if (const std::string home = Home(); !home.empty()) AllowCache(home + "/.cache");
}

// One that holds the working directory is no cache. One that does not exist yet is made: nobody could make it later.
void TrialPlaces::AllowCache(const std::string& path) {
  const std::string place = Absolute(path);
  std::error_code failed;
  const std::string here = fs::current_path(failed).string() + "/";
  if (here.starts_with(place + "/")) return;
  fs::create_directories(place, failed);
  if (!failed) writable_.push_back(place);
}

TrialPlaces::~TrialPlaces() {
  std::error_code unknown;
  if (!made_log_.empty() && fs::is_empty(made_log_, unknown)) fs::remove(made_log_, unknown);
}

std::map<std::string, std::string> TrialPlaces::Environment() const {
  return {{"FULLBORE_TRIAL", files()},
          {"FULLBORE_TRIAL_KEPT", fmt::format("{}", fmt::join(writable_, "\n"))},
          {"TMPDIR", temporary_}};  // a process that is ended leaves there what it would have removed
}

}  // namespace fullbore::tune
