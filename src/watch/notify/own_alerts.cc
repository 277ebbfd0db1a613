#include "watch/notify/own_alerts.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/guarded_file.h"

namespace fullbore::watch {

namespace {

namespace fs = std::filesystem;

constexpr auto kKept = std::chrono::hours(24 * 30);

// FNV-1a: the same in every version of this program. Nobody is kept out by it, names of rules only become short.
uint64_t NumberOf(std::string_view text) {
  uint64_t number = 0xcbf29ce484222325;
  for (const char c : text) number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return number;
}

}  // namespace

std::string OwnAlerts::UsualDirectory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return std::string(state) + "/fullbore/alerts";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.local/state/fullbore/alerts" : "";
}

std::string OwnAlerts::PathOf(const std::string& run_file, const record::AlertRow& row) const {
  struct stat status {};
  if (directory_.empty() || stat(run_file.c_str(), &status) != 0) return "";
  return fmt::format("{}/{}-{}-{}-{:016x}", directory_, status.st_ino, row.stage, row.fired_ns,
                     NumberOf(row.rule));
}

Result<void> OwnAlerts::Note(const std::string& run_file, const record::AlertRow& row) const {
  const std::string path = PathOf(run_file, row);
  if (path.empty())
    return Error{ErrorCode::kUnavailable, "no directory is known for it", "set HOME or XDG_STATE_HOME"};
  if (auto made = MakeTrustedDirectory(directory_, kPrivateDirectory); !made) return made;
  RemoveOld();
  const auto created = CreateFileIfMissing(path, kPrivateFile);
  return created ? Result<void>() : created.error();
}

// A note of somebody else would be another user's word for what we have said.
bool OwnAlerts::Has(const std::string& run_file, const record::AlertRow& row) const {
  const std::string path = PathOf(run_file, row);
  struct stat status {};
  return !path.empty() && lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == geteuid();
}

void OwnAlerts::Forget(const std::string& run_file, const record::AlertRow& row) const {
  if (const std::string path = PathOf(run_file, row); !path.empty()) (void)unlink(path.c_str());
}

bool OwnAlerts::IsOwed(const std::string& run_file) const {
  const auto alerts = record::ReadAlerts(run_file);
  return alerts && std::ranges::any_of(*alerts, [&](const record::AlertRow& alert) {
           return (!alert.resolved_ns || !alert.undelivered.empty()) && Has(run_file, alert);
         });
}

void OwnAlerts::RemoveOld() const {
  std::error_code error;
  const auto since = fs::file_time_type::clock::now() - kKept;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    std::error_code gone;
    if (const auto written = entry.last_write_time(gone); !gone && written < since)
      fs::remove(entry.path(), gone);
  }
}

}  // namespace fullbore::watch
