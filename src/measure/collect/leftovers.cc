#include "measure/collect/leftovers.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/guarded_file.h"
#include "base/text.h"
#include "measure/collect/process.h"

namespace fullbore::collect {

namespace fs = std::filesystem;

namespace {

constexpr char kNote[] = "recorder";

// Who records: where its process numbers mean something, and since when.
struct Recorder {
  std::string host, boot, pid_namespace;
  int64_t pid = 0;
  std::string begin;
};

Recorder ThisProcess() {
  std::string host(256, '\0');
  if (gethostname(host.data(), host.size() - 1) != 0) host.clear();
  const auto boot = ReadFile("/proc/sys/kernel/random/boot_id");
  std::error_code error;
  const fs::path space = fs::read_symlink("/proc/self/ns/pid", error);
  return {host.c_str(), boot ? std::string(Trim(*boot)) : "", space, getpid(), BeginOf(getpid())};
}

Result<void> WriteNote(const fs::path& directory, const Recorder& r) {
  return WriteFileAtOnce(directory / kNote,
                         fmt::format("{}\n{}\n{}\n{}\n{}\n", r.host, r.boot, r.pid_namespace, r.pid, r.begin),
                         kPrivateFile);
}

// Only in a directory of this user's: one that somebody else planted may say anything.
std::optional<Recorder> ReadNote(const fs::path& directory) {
  struct stat status {};
  if (lstat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
    return std::nullopt;
  const std::string path = directory / kNote;
  const auto fd = OpenRegularFile(path);
  if (!fd) return std::nullopt;
  const auto text = ReadToEnd(fd->get(), path);
  if (!text) return std::nullopt;
  const std::vector<std::string_view> lines = Split(*text, '\n');
  if (lines.size() < 5) return std::nullopt;
  const auto pid = ParseInt(lines[3]);
  if (!pid) return std::nullopt;
  return Recorder{std::string(lines[0]), std::string(lines[1]), std::string(lines[2]), *pid,
                  std::string(lines[4])};
}

// Files of a channel are named <pid>-<created>.
bool HasLiveOwner(const fs::path& file) {
  const std::string name = file.filename();
  const auto pid = ParseInt(std::string_view(name).substr(0, name.find('-')));
  return pid && IsAlive(*pid);
}

std::vector<fs::path> List(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  return entries;
}

bool IsLeftover(const fs::path& directory, const Recorder& here) {
  const auto recorder = ReadNote(directory);
  if (!recorder || recorder->host != here.host || here.boot.empty()) return false;
  if (recorder->boot != here.boot) return true;  // the machine was started anew since
  if (recorder->pid_namespace != here.pid_namespace) return false;
  if (IsAlive(recorder->pid) && BeginOf(recorder->pid) == recorder->begin) return false;
  return std::ranges::none_of(List(directory), HasLiveOwner);
}

}  // namespace

Result<std::string> MakeChannelDirectory(const std::string& runs_directory, const std::string& run_id) {
  auto directory =
      MakeUniqueDirectory(fs::path(runs_directory) / fmt::format("{}.channel.{}", run_id, getpid()));
  if (!directory) return directory;
  if (auto written = WriteNote(*directory, ThisProcess()); !written) return written.error();
  return directory;
}

int RemoveLeftovers(const std::string& runs_directory) {
  const Recorder here = ThisProcess();
  int removed = 0;
  for (const fs::path& entry : List(runs_directory)) {
    if (entry.filename().string().find(".channel.") == std::string::npos || !IsLeftover(entry, here))
      continue;
    std::error_code error;
    fs::remove_all(entry, error);
    if (!error) ++removed;
  }
  return removed;
}

}  // namespace fullbore::collect
