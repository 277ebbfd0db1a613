#include "watch/removal.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result_file.h"
#include "base/trusted_path.h"

namespace fullbore::watch {

namespace {

constexpr std::string_view kLogSuffix = "-wal", kIndexSuffix = "-shm";
constexpr char kRecorded[] = "it is being recorded", kEndIt[] = "end it first";
constexpr std::string_view kAsideSuffix = ".deleted";  // of a name that nobody can foresee
constexpr size_t kAsideBytes = 8;                      // of it, in hexadecimal digits
constexpr int kMostNames = 100;
// SQLite's "dead man switch": whoever has the database open holds a shared lock on this byte of its index.
constexpr off_t kOpenByte = 128;

std::string FileOf(const KnownRun& run) { return run.name + std::string(record::kRunSuffix); }

Error NotDeleted(const std::string& name, std::string_view why, std::string hint,
                 ErrorCode code = ErrorCode::kUnavailable) {
  return {code, fmt::format("the run '{}' is not deleted: {}", name, why), std::move(hint)};
}

Error SystemError(const std::string& name, const char* what) {
  const int problem = errno;
  return NotDeleted(name, fmt::format("{}: {}", what, std::generic_category().message(problem)),
                    problem == ENOENT ? "it is gone already" : "");
}

std::optional<struct stat> Stat(int at, const std::string& name) {
  struct stat info {};
  if (fstatat(at, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return info;
}

ino_t InodeOf(int at, const std::string& name) {
  const auto info = Stat(at, name);
  return info ? info->st_ino : 0;
}

bool IsOurs(const struct stat& info) { return info.st_uid == geteuid(); }

bool IsOurFile(int at, const std::string& name) {
  const auto info = Stat(at, name);
  return info && S_ISREG(info->st_mode) && IsOurs(*info);
}

struct Closer {
  void operator()(DIR* directory) const { closedir(directory); }
};

// The names in an open directory, of which another descriptor is used.
std::vector<std::string> NamesIn(int at) {
  UniqueFd again(openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, Closer> open(again.valid() ? fdopendir(again.get()) : nullptr);
  if (!open) return {};
  (void)again.release();
  std::vector<std::string> names;
  while (const dirent* entry = readdir(open.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

// Whether a program has the database open, as far as this machine knows.
bool IsOpen(int at, const std::string& file) {
  const UniqueFd index(
      openat(at, (file + std::string(kIndexSuffix)).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!index.valid()) return false;
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = kOpenByte;
  range.l_len = 1;
  return fcntl(index.get(), F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

bool IsOfRun(const std::string& name) {
  const auto ends = [&](std::string_view suffix) {
    return name.ends_with(std::string(record::kRunSuffix) + std::string(suffix));
  };
  return ends("") || ends(kLogSuffix) || ends(kIndexSuffix);
}

// What the folder of a run on several machines holds; an error for what `run` does not write there.
Result<std::vector<std::string>> FilesOfFolder(int folder, const std::string& name) {
  std::vector<std::string> files = NamesIn(folder);
  for (const std::string& file : files) {
    if (!IsOfRun(file) || !IsOurFile(folder, file))
      return NotDeleted(name, fmt::format("its folder holds '{}', which is not of it", file),
                        "move that elsewhere");
    if (IsOpen(folder, file))
      return NotDeleted(name, "a program has it open", "try again when that has ended");
  }
  return files;
}

// Whether a page is the report that `run` wrote.
bool IsOurReport(int at, const std::string& name) {
  if (!IsOurFile(at, name)) return false;
  const UniqueFd page(openat(at, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::array<char, kBytesOfMark> head{};
  const ssize_t got = page.valid() ? read(page.get(), head.data(), head.size()) : -1;
  return got > 0 && kHtmlResult.is_ours({head.data(), static_cast<size_t>(got)});
}

// "train.rank0-step40.json.zst", "train.fit-rank0-step40.json.zst": what `run --keep-windows` writes beside "train.fbr".
bool IsWindowOf(const std::string& run, std::string_view name) {
  if (!name.starts_with(run + ".") || !name.ends_with(".json.zst")) return false;
  const size_t step = name.rfind("-step"), rank = name.rfind("rank", step);
  return step != std::string_view::npos && rank != std::string_view::npos && rank > run.size();
}

// The size that is freed, or 0.
int64_t Unlink(int at, const std::string& name) {
  const auto info = Stat(at, name);
  return info && unlinkat(at, name.c_str(), 0) == 0 ? int64_t{info->st_size} : 0;
}

struct Seen {
  std::string name;
  ino_t inode;
};

// What lies beside the file of a run and goes with it.
std::vector<Seen> BesideOf(int at, const std::string& run) {
  const std::string file = run + std::string(record::kRunSuffix);
  std::vector<Seen> beside;
  for (const std::string& name : NamesIn(at)) {
    const bool is_log = name == file + std::string(kLogSuffix) || name == file + std::string(kIndexSuffix);
    const bool is_made = (name == run + ".html" && IsOurReport(at, name)) || IsWindowOf(run, name);
    if ((is_log || is_made) && IsOurFile(at, name)) beside.push_back({name, InodeOf(at, name)});
  }
  return beside;
}

// Those that are still the same: somebody may have begun to record another run under the name.
int64_t UnlinkSeen(int at, const std::vector<Seen>& beside) {
  int64_t freed = 0;
  for (const Seen& seen : beside) {
    if (InodeOf(at, seen.name) == seen.inode) freed += Unlink(at, seen.name);
  }
  return freed;
}

// Why what stands there is not to be deleted; nothing where it may be.
std::optional<Error> Refusal(int at, const std::string& file, const KnownRun& run) {
  const auto info = Stat(at, file);
  if (!info) return SystemError(run.name, "its file cannot be looked at");
  if (!S_ISREG(info->st_mode) && !S_ISDIR(info->st_mode))
    return NotDeleted(run.name, "a link stands in its place", "delete the link, or the run where it is");
  if (!IsOurs(*info))
    return NotDeleted(run.name, fmt::format("it belongs to the user {}", UserName(info->st_uid)),
                      "that user can delete it", ErrorCode::kPermission);
  const int64_t changed_ns = int64_t{info->st_mtim.tv_sec} * kNsPerSecond + info->st_mtim.tv_nsec;
  const bool same =
      info->st_ino == run.stamp.inode &&
      (S_ISDIR(info->st_mode) || (info->st_size == run.stamp.bytes && changed_ns == run.stamp.changed_ns));
  if (!same) return NotDeleted(run.name, "it has changed since it was listed", "look at it again");
  return std::nullopt;
}

// The list comes from an index that others may have written; a file says itself that it is a run, and what protects it.
std::optional<Error> SaysOtherwise(const std::string& path, const KnownRun& run) {
  const auto summary = record::ReadRunSummary(path);
  if (!summary) return NotDeleted(run.name, summary.error().text, summary.error().hint);
  if (summary->tags.contains(kPinTag) || summary->note != run.summary.note || summary->id != run.summary.id)
    return NotDeleted(run.name, "its file says something else than the list", "look at it again");
  // Of another machine's recorder, nothing but its writing is seen here.
  if (summary->stages.back().state != record::StageState::kEnded && !IsSilent(path, WallNs()))
    return NotDeleted(run.name, kRecorded, kEndIt);
  return std::nullopt;
}

// False where the name is taken. A file system that cannot ask whether it is (NFS) gives a file a second name, and puts
// no folder where anything is.
bool RenamedToFree(int at, const std::string& from, const std::string& to) {
  if (renameat2(at, from.c_str(), at, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  const auto info = Stat(at, from);
  if (info && S_ISDIR(info->st_mode)) return renameat(at, from.c_str(), at, to.c_str()) == 0;
  return linkat(at, from.c_str(), at, to.c_str(), 0) == 0 && unlinkat(at, from.c_str(), 0) == 0;
}

// Its own name again, or one with a number where somebody has taken that meanwhile: aside, it would be a leftover.
void MoveBack(int at, const std::string& aside, const std::string& run) {
  std::string name = run;
  for (int number = 2; number <= kMostNames; ++number) {
    if (RenamedToFree(at, aside, name + std::string(record::kRunSuffix))) return;
    name = fmt::format("{}-{}", run, number);
  }
}

Result<std::string> UnforeseenName() {
  std::array<unsigned char, kAsideBytes> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return Error{ErrorCode::kUnavailable, "the system has no random bytes", ""};
  std::string name = ".";
  for (const unsigned char byte : bytes) name += fmt::format("{:02x}", byte);
  return name + std::string(kAsideSuffix);
}

bool IsAside(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kAsideSuffix)) return false;
  const std::string_view digits = name.substr(1, name.size() - 1 - kAsideSuffix.size());
  return digits.size() == 2 * kAsideBytes &&
         std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// Held while a run is being deleted, so that nobody takes it for a leftover; the system lets go of it with the process.
// Without it, where a file system has no locks, no leftover is deleted either.
UniqueFd Held(int at, const std::string& file) {
  UniqueFd held(openat(at, file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (held.valid()) (void)flock(held.get(), LOCK_SH | LOCK_NB);
  return held;
}

// A leftover that nobody is deleting, locked against another who would finish it, too. A file is opened for writing:
// over NFS, nothing else is locked alone. Its name is asked for again with the lock: a removal may have given it its own
// back.
struct Leftover {
  UniqueFd held;
  bool is_folder = false;
};

std::optional<Leftover> LeftoverOf(int at, const std::string& aside) {
  const auto info = Stat(at, aside);
  if (!info || !IsOurs(*info) || !(S_ISREG(info->st_mode) || S_ISDIR(info->st_mode))) return std::nullopt;
  const bool is_folder = S_ISDIR(info->st_mode);
  const int access = is_folder ? O_RDONLY | O_DIRECTORY : O_RDWR;
  UniqueFd held(openat(at, aside.c_str(), access | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!held.valid() || flock(held.get(), LOCK_EX | LOCK_NB) != 0) return std::nullopt;
  struct stat locked {};
  const bool is_it = fstat(held.get(), &locked) == 0 && locked.st_ino == info->st_ino;
  if (!is_it || InodeOf(at, aside) != locked.st_ino) return std::nullopt;
  return Leftover{std::move(held), is_folder};
}

// What `aside` is, now that nobody else knows its name.
Result<int64_t> UnlinkAside(int at, const std::string& aside, const KnownRun& run) {
  if (auto refused = Refusal(at, aside, run)) return *refused;
  if (S_ISREG(Stat(at, aside)->st_mode)) {
    if (IsOpen(at, FileOf(run)))
      return NotDeleted(run.name, "a program has it open", "try again when that has ended");
    return Unlink(at, aside);
  }
  const UniqueFd folder(openat(at, aside.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder.valid()) return SystemError(run.name, "its folder cannot be opened");
  const auto files = FilesOfFolder(folder.get(), run.name);
  if (!files) return files.error();
  int64_t freed = 0;
  for (const std::string& file : *files) freed += Unlink(folder.get(), file);
  if (unlinkat(at, aside.c_str(), AT_REMOVEDIR) != 0)
    return SystemError(run.name, "its folder cannot be removed");
  return freed;
}

// Whether the file of a leftover is a run that nobody wants: its last moment may have been one of a pin, or of a
// recorder that went on.
bool IsUnwanted(const std::string& path) {
  const auto summary = record::ReadRunSummary(path);
  return summary && !summary->tags.contains(kPinTag) &&
         (summary->stages.back().state == record::StageState::kEnded || IsSilent(path, WallNs()));
}

void FinishFolder(int at, int folder, const std::string& path, const std::string& aside) {
  const auto files = FilesOfFolder(folder, aside);
  const auto is_unwanted = [&](const std::string& file) {
    return !file.ends_with(record::kRunSuffix) || IsUnwanted(path + "/" + file);
  };
  if (!files || !std::ranges::all_of(*files, is_unwanted)) return;
  for (const std::string& file : *files) (void)Unlink(folder, file);
  (void)unlinkat(at, aside.c_str(), AT_REMOVEDIR);
}

}  // namespace

std::string WhyHeld(const KnownRun& run) {
  if (run.state == RunState::kRunning) return kRecorded;
  return run.summary.tags.contains(kPinTag) ? "it is pinned" : "";
}

Result<int64_t> RemoveRun(const std::string& directory, const KnownRun& run) {
  if (const std::string held = WhyHeld(run); !held.empty()) {
    return NotDeleted(run.name, held,
                      run.state == RunState::kRunning ? kEndIt : "fullbore runs --unpin " + run.name);
  }
  const UniqueFd at(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.valid()) return SystemError(run.name, "its directory cannot be opened");
  const std::string file = FileOf(run);
  if (auto refused = Refusal(at.get(), file, run)) return *refused;
  if (auto refused = SaysOtherwise(directory + "/" + file, run)) return *refused;
  if (IsOpen(at.get(), file))
    return NotDeleted(run.name, "a program has it open", "try again when that has ended");
  const UniqueFd held = Held(at.get(), file);
  const std::vector<Seen> beside = BesideOf(at.get(), run.name);
  const auto aside = UnforeseenName();
  if (!aside) return aside.error();
  if (renameat(at.get(), file.c_str(), at.get(), aside->c_str()) != 0)
    return SystemError(run.name, "it cannot be moved");
  const auto freed = UnlinkAside(at.get(), *aside, run);
  if (!freed) {
    MoveBack(at.get(), *aside, run.name);
    return freed.error();
  }
  return *freed + UnlinkSeen(at.get(), beside);
}

void FinishRemovals(const std::string& directory) {
  const UniqueFd at(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.valid()) return;
  for (const std::string& name : NamesIn(at.get())) {
    const auto leftover = IsAside(name) ? LeftoverOf(at.get(), name) : std::nullopt;
    if (leftover && leftover->is_folder)
      FinishFolder(at.get(), leftover->held.get(), directory + "/" + name, name);
    else if (leftover && IsUnwanted(directory + "/" + name))
      (void)Unlink(at.get(), name);
  }
}

}  // namespace fullbore::watch
