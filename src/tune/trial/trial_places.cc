#include "tune/trial/trial_places.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/guarded_file.h"
#include "base/text.h"
#include "measure/isolate/layered_view.h"

namespace fullbore::tune {

namespace fs = std::filesystem;

namespace {

constexpr std::array kSystems = {"/dev", "/proc", "/sys"};
// Of the directory for temporary files: a socket's path takes at most 107 characters, of which multiprocessing's own part is
// up to 40.
constexpr size_t kLongestTemporary = 64;

// The directories that exist among the user's usual ones and those that the command names: "--output=/data/alice/run1".
std::vector<std::string> WhereItMayWrite(const std::vector<std::string>& command) {
  std::vector<std::string> places;
  const auto add = [&](fs::path path) {
    std::error_code failed;
    path = fs::weakly_canonical(fs::absolute(path, failed), failed);
    if (failed) return;
    while (path.has_relative_path() && !fs::is_directory(path, failed)) path = path.parent_path();
    if (path.has_relative_path()) places.push_back(path.string());
  };
  for (const char* name : {"HOME", "TMPDIR"}) {
    if (const char* path = std::getenv(name); path != nullptr && *path != '\0') add(path);
  }
  for (const std::string& word : command) {
    const std::string path =
        word.starts_with('-') ? word.substr(std::min(word.find('=') + 1, word.size())) : word;
    if (path.find('/') != std::string::npos) add(path);
  }
  return places;
}

}  // namespace

Result<TrialPlaces> TrialPlaces::Make(const Shelter& shelter, const std::string& log) {
  auto scratch = isolate::Scratch::Make(shelter.place);
  if (!scratch) return scratch.error();
  auto output = CreateFile(scratch->path() + "/output", kPrivateFile);
  if (!output) return output.error();
  TrialPlaces places(std::move(*scratch), std::move(*output), shelter);
  std::error_code unknown;
  if (!log.empty()) places.log_ = fs::weakly_canonical(fs::absolute(log, unknown), unknown).string();
  if (!places.has_view()) {
    if (auto laid_out = places.LayOut(); !laid_out) return laid_out.error();
  }
  return places;
}

TrialPlaces::TrialPlaces(TrialPlaces&& other) noexcept
    : scratch_(std::move(other.scratch_)),
      short_(std::move(other.short_)),
      output_(std::move(other.output_)),
      shelter_(std::move(other.shelter_)),
      log_(std::move(other.log_)),
      temporary_(std::move(other.temporary_)),
      writable_(std::move(other.writable_)),
      made_log_(std::exchange(other.made_log_, {})) {}

Result<void> TrialPlaces::LayOut() {
  if (auto made = MakeDirectory(files(), kPrivateDirectory); !made) return made;
  writable_.push_back(files());
  if (auto made = MakeTemporary(); !made) return made;
  writable_.insert(writable_.end(), kSystems.begin(), kSystems.end());
  for (const std::string& cache : Caches()) writable_.push_back(cache);
  return log_.empty() ? Result<void>() : AllowLog();
}

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

Result<void> TrialPlaces::AllowLog() {
  auto made = CreateFileIfMissing(log_, kOrdinaryFile);
  if (!made) return made.error();
  if (*made) made_log_ = log_;
  writable_.push_back(log_);
  return {};
}

TrialPlaces::~TrialPlaces() {
  std::error_code unknown;
  if (!made_log_.empty() && fs::is_empty(made_log_, unknown)) fs::remove(made_log_, unknown);
}

std::string TrialPlaces::LogPath() const {
  if (log_.empty()) return output_path();
  return has_view() ? isolate::WrittenAs(scratch_.path(), log_) : log_;
}

collect::Command::Apart TrialPlaces::Apart(const std::vector<std::string>& command) const {
  isolate::Apart files{shelter_.found.protection, scratch_.path(), {}, {},
                       WhereItMayWrite(command),  writable_};
  std::vector<std::string> removed_if_we_die = {scratch_.path()};
  if (shelter_.caches) {
    removed_if_we_die.push_back(shelter_.caches->path());
    int count = 0;
    for (const std::string& cache : Caches())
      files.outlive[cache] = fmt::format("{}/{}", shelter_.caches->path(), count++);
  }
  return {output_.get(), scratch_.lock(), std::move(files), std::move(removed_if_we_die)};
}

std::map<std::string, std::string> TrialPlaces::Environment() const {
  if (has_view()) return {{"FULLBORE_TRIAL", "1"}};
  return {{"FULLBORE_TRIAL", "1"},
          {"FULLBORE_TRIAL_FILES", files()},
          {"FULLBORE_TRIAL_KEPT", fmt::format("{}", fmt::join(writable_, "\n"))},
          {"TMPDIR", temporary_}};  // a process that is ended leaves there what it would have removed
}

std::string TrialPlaces::WroteTooMuch() const {
  const int64_t used = scratch_.UsedBytes();
  if (used <= scratch_.most_bytes()) return "";
  return fmt::format("it wrote {}: more than half of what was free in '{}'",
                     FormatBytes(static_cast<double>(used)), shelter_.place);
}

}  // namespace fullbore::tune
