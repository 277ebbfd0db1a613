#include "measure/collect/leftovers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/guarded_file.h"
#include "base/text.h"
#include "measure/collect/process.h"

namespace fullbore::collect {

namespace fs = std::filesystem;

namespace {

constexpr char kNote[] = "recorder";

// Who records: the namespace in which its pid means something, and its start time.
struct Recorder {
  std::string boot, pid_namespace;
  int64_t pid = 0;
  std::string begin;
};

Recorder ThisProcess() {
  const auto boot = ReadFile("/proc/sys/kernel/random/boot_id");
  std::error_code error;
  const fs::path space = fs::read_symlink("/proc/self/ns/pid", error);
  return {boot ? std::string(Trim(*boot)) : "", space, getpid(), BeginOf(getpid())};
}

Result<void> WriteNote(const fs::path& directory, const Recorder& r) {
  return WriteFileAtOnce(directory / kNote,
                         fmt::format("{}\n{}\n{}\n{}\n", r.boot, r.pid_namespace, r.pid, r.begin),
                         kPrivateFile);
}

struct Note {
  Recorder recorder;
  int64_t touched_ns = 0;  // by the file system's clock
};

int64_t TouchedNs(const struct stat& status) {
  return status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec;
}

// Only in a directory of this user: one that somebody else planted may claim anything.
std::optional<Note> ReadNote(const fs::path& directory) {
  struct stat status {};
  if (lstat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
    return std::nullopt;
  const std::string path = directory / kNote;
  const auto fd = OpenRegularFile(path);
  if (!fd || fstat(fd->get(), &status) != 0) return std::nullopt;
  const auto text = ReadToEnd(fd->get(), path);
  if (!text) return std::nullopt;
  const std::vector<std::string_view> lines = Split(*text, '\n');
  if (lines.size() < 4) return std::nullopt;
  const auto pid = ParseInt(lines[2]);
  if (!pid) return std::nullopt;
  return Note{{std::string(lines[0]), std::string(lines[1]), *pid, std::string(lines[3])}, TouchedNs(status)};
}

// The time by the file system's clock, which may be another machine's. Nothing if no file can be created
// there; then none could be removed either.
std::optional<int64_t> NowOn(const std::string& directory) {
  const std::string name =
      directory + "/.fullbore-" + std::to_string(getpid()) + "-" + std::to_string(MonotonicNs());
  const auto fd = CreateFile(name, kPrivateFile);
  if (!fd) return std::nullopt;
  struct stat status {};
  const bool known = fstat(fd->get(), &status) == 0;
  unlink(name.c_str());
  return known ? std::optional(TouchedNs(status)) : std::nullopt;
}

// The files of a channel are named <pid>-<created>.
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

// Pids are comparable only within the same boot of the same kernel and the same PID namespace.
bool IsComparable(const Recorder& recorder, const Recorder& here) {
  return recorder.boot == here.boot && recorder.pid_namespace == here.pid_namespace;
}

bool LivesHere(const fs::path& directory, const Recorder& recorder, const Recorder& here) {
  if (!IsComparable(recorder, here)) return false;
  if (IsAlive(recorder.pid) && BeginOf(recorder.pid) == recorder.begin) return true;
  return std::ranges::any_of(List(directory), HasLiveOwner);
}

bool IsLeftover(const fs::path& directory, const Recorder& here, int64_t now_ns, bool is_of_this_kernel) {
  const auto note = ReadNote(directory);
  if (!note || LivesHere(directory, note->recorder, here)) return false;
  const bool is_known = is_of_this_kernel && IsComparable(note->recorder, here);
  return is_known || now_ns - note->touched_ns >= kSilentNs;
}

}  // namespace

Result<std::string> MakeChannelDirectory(const std::string& place, const std::string& run_id) {
  auto directory = MakeUniqueDirectory(fs::path(place) / fmt::format("{}.channel.{}", run_id, getpid()));
  if (!directory) return directory;
  if (auto written = WriteNote(*directory, ThisProcess()); !written) {
    std::error_code ignored;
    fs::remove(*directory,
               ignored);  // it is empty, and to list it takes a descriptor, of which there may be none left
    return written.error();
  }
  return directory;
}

void Beat(const std::string& channel_directory) {
  const std::string note = channel_directory + "/" + kNote;
  if (utimensat(AT_FDCWD, note.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT) return;
  if (IsInMemory(fs::path(channel_directory).parent_path()) &&
      mkdir(channel_directory.c_str(), kPrivateDirectory) == 0)
    (void)WriteNote(channel_directory, ThisProcess());
}

bool IsInMemory(const std::string& directory) {
  struct statfs status {};
  return statfs(directory.c_str(), &status) == 0 && status.f_type == TMPFS_MAGIC;
}

int RemoveLeftovers(const std::string& place) {
  std::vector<fs::path> channels = List(place);
  std::erase_if(channels, [](const fs::path& entry) {
    return entry.filename().string().find(".channel.") == std::string::npos;
  });
  if (channels.empty()) return 0;
  const auto now_ns = NowOn(place);
  if (!now_ns) return 0;
  const bool is_of_this_kernel = IsInMemory(place);
  const Recorder here = ThisProcess();
  int removed = 0;
  for (const fs::path& directory : channels) {
    if (!IsLeftover(directory, here, *now_ns, is_of_this_kernel)) continue;
    std::error_code error;
    fs::remove_all(directory, error);
    if (!error) ++removed;
  }
  return removed;
}

}  // namespace fullbore::collect
