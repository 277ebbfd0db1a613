#include "base/result_file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace fullbore {

namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel's own limit
constexpr int64_t kReaderPatienceNs = 3 * kNsPerSecond;

// ---- marks ----

// The first of these that an object begins with, whatever the blanks.
bool BeginsWithSchema(std::string_view head, std::initializer_list<const char*> names) {
  std::string packed;
  for (const char c : head.substr(0, 256)) {
    if (c != ' ' && c != '\n') packed += c;
  }
  if (packed.starts_with('[')) packed.erase(0, 1);
  for (const std::string key : {"schema", "format"}) {
    for (const char* name : names) {
      if (packed.starts_with("{\"" + key + "\":\"fullbore." + name + "/")) return true;
    }
  }
  return false;
}

// What was written before each element of the list of runs named its schema.
bool IsOlderListOfRuns(std::string_view head) {
  return head.starts_with("[\n  {\n    \"id\": \"") && head.find("\"begin_unix_ns\": ") != head.npos;
}

bool IsOurJson(std::string_view head) {
  return head == "[]\n" || IsOlderListOfRuns(head) ||
         BeginsWithSchema(head, {"report", "comparison", "comparisons", "contest", "sections", "runs", "tune",
                                 "measure", "doctor", "top", "alert", "alerts_test", "fleet", "fleet_collect",
                                 "fleet_nodes", "loader_bench", "loader_bench_script", "loader_pack"});
}

// Pages from before they named their generator are known by the policy that only they declare.
bool IsOurHtml(std::string_view head) {
  return head.starts_with("<!doctype html>\n") &&
         (head.find("<meta name=\"generator\" content=\"fullbore\">") != head.npos ||
          head.find("\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                    "img-src data:\">\n<link rel=\"icon\" href=\"data:,\">") != head.npos);
}

bool IsOurDiff(std::string_view head) { return head.starts_with(kDiffMark); }

bool IsOurTrace(std::string_view head) {
  constexpr unsigned char kDeflate = 8, kHasComment = 0x10;
  constexpr size_t kHeaderBytes = 10;
  if (BeginsWithSchema(head, {"export"})) return true;
  const std::string gzip = {'\x1f', '\x8b', kDeflate, kHasComment};
  return head.starts_with(gzip) && head.size() > kHeaderBytes &&
         head.substr(kHeaderBytes).starts_with(std::string_view(kTraceMark, sizeof kTraceMark));
}

// ---- what stands there ----

struct Place {
  enum class Kind { kNothing, kRegular, kDescriptor, kThrough, kDirectory, kSocket, kDisk };
  Kind kind = Kind::kNothing;
  std::string path;  // without links
  int fd = -1;       // of kDescriptor, ours
  struct stat status {};
};

Place::Kind KindOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return Place::Kind::kRegular;
    case S_IFDIR:
      return Place::Kind::kDirectory;
    case S_IFSOCK:
      return Place::Kind::kSocket;
    case S_IFBLK:
      return Place::Kind::kDisk;
    default:
      return Place::Kind::kThrough;
  }
}

std::string ParentOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

// The number behind /dev/fd/N, /proc/self/fd/N and the like. Opened by such a name, a file would be written from its
// beginning, over what the shell's >> keeps.
std::optional<int> OwnDescriptor(const std::string& path) {
  const std::string name = fs::path(path).filename();
  const auto number = ParseInt(name);
  if (!number || *number < 0 || name.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  std::error_code error;
  const std::string parent = fs::canonical(ParentOf(path), error);
  const std::string own = "/proc/" + std::to_string(getpid()) + "/";
  if (error || !parent.starts_with(own) || !parent.ends_with("/fd")) return std::nullopt;
  return static_cast<int>(*number);
}

Error PlantedError(const std::string& path) {
  return {ErrorCode::kInvalidArgument,
          "'" + path + "' belongs to another user, in a directory that everybody can write to",
          "name a file somewhere else"};
}

bool IsPlanted(const std::string& path, const struct stat& entry) {
  struct stat parent {};
  return stat(ParentOf(path).c_str(), &parent) == 0 && CouldBePlanted(entry, parent, geteuid());
}

Place DescriptorPlace(int fd) {
  Place place;
  place.kind = Place::Kind::kDescriptor;
  place.fd = fd;
  (void)fstat(fd, &place.status);
  return place;
}

// The same file at a path whose directories hold no links, as far as they exist.
std::string WithoutLinks(const std::string& path) {
  std::error_code error;
  const fs::path parent = fs::canonical(ParentOf(path), error);
  return error ? path : (parent / fs::path(path).filename()).string();
}

Result<Place> FindPlace(const std::string& named) {
  if (named == "-") return DescriptorPlace(STDOUT_FILENO);
  Place place;
  place.path = named;
  for (int links = 0; links < kMostLinks; ++links) {
    if (const auto fd = OwnDescriptor(place.path)) return DescriptorPlace(*fd);
    // What cannot be looked at cannot be written either, and writing says why.
    if (lstat(place.path.c_str(), &place.status) != 0) break;
    if (!S_ISLNK(place.status.st_mode)) {
      place.kind = KindOf(place.status.st_mode);
      if (place.kind == Place::Kind::kThrough && IsPlanted(place.path, place.status))
        return PlantedError(place.path);
      break;
    }
    if (IsPlanted(place.path, place.status)) return PlantedError(place.path);
    std::error_code error;
    const fs::path next = fs::read_symlink(place.path, error);
    if (error) return ErrnoError("cannot follow '" + place.path + "'", error.value());
    const std::string after =
        next.is_absolute() ? next.string() : (fs::path(ParentOf(place.path)) / next).string();
    // A descriptor of another process leads to what may have no name.
    if (lstat(after.c_str(), &place.status) != 0 && stat(place.path.c_str(), &place.status) == 0) {
      place.kind = KindOf(place.status.st_mode);
      if (place.kind == Place::Kind::kThrough) return place;
      return Error{ErrorCode::kInvalidArgument, "'" + place.path + "' leads to a file without a name", ""};
    }
    place.path = after;
    place.status = {};
  }
  place.path = WithoutLinks(place.path);
  return place;
}

// ---- judging ----

Error Refused(const ResultFile& file, const std::string& why, const std::string& hint) {
  return {ErrorCode::kInvalidArgument, file.option + ": " + why, hint};
}

std::string NameMissing(const ResultFile& file) {
  const bool json = &file.format() == &kJsonResult;
  return "is the name of the output missing? " +
         (json ? std::string("--json - writes to standard output") : "it goes behind " + file.option);
}

Error InputError(const ResultFile& file, const std::string& input) {
  const std::string as = input == file.path ? "" : " ('" + input + "')";
  return Refused(file, "'" + file.path + "' is an input of this command" + as + ", and is never replaced",
                 NameMissing(file));
}

// Nothing where the file cannot be read.
std::optional<std::string> HeadOf(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  std::string head(kBytesOfMark, '\0');
  size_t size = 0;
  while (fd.valid() && size < head.size()) {
    const ssize_t got = read(fd.get(), head.data() + size, head.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (!fd.valid()) return std::nullopt;
  head.resize(size);
  return head;
}

Result<void> JudgeRegular(const ResultFile& file, const Place& place) {
  if (const auto input = file.inputs.NameOf(place.status)) return InputError(file, *input);
  const auto head = HeadOf(place.path);
  const bool empty = head && head->empty();
  const bool ours = head && file.format().is_ours(*head);
  if (!empty && !(ours && !file.format().can_be_read)) {
    if (const auto directory = file.inputs.DirectoryWith(place.path, place.status))
      return InputError(file, *directory);
  }
  if (empty || ours || file.force) return {};
  return Refused(
      file,
      head ? "'" + file.path + "' is there already, and is not " + file.format().name + " that fullbore wrote"
           : "'" + file.path + "' is there already, and cannot be read to see whose it is",
      NameMissing(file) + "; --force replaces the file");
}

Result<void> JudgeDescriptor(const ResultFile& file, const Place& place) {
  const int flags = fcntl(place.fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
    return Refused(file, "'" + file.path + "' is not open for writing", "");
  if (!S_ISREG(place.status.st_mode)) return {};
  if (const auto input = file.inputs.NameOf(place.status)) return InputError(file, *input);
  return {};
}

Result<void> JudgePlace(const ResultFile& file, const Place& place) {
  switch (place.kind) {
    case Place::Kind::kNothing:
    case Place::Kind::kThrough:
      return {};
    case Place::Kind::kRegular:
      return JudgeRegular(file, place);
    case Place::Kind::kDescriptor:
      return JudgeDescriptor(file, place);
    case Place::Kind::kDirectory:
      return Refused(file, "'" + file.path + "' is a directory", "name a file in it");
    case Place::Kind::kSocket:
      return Refused(file, "'" + file.path + "' is a socket", "name a file, or a FIFO");
    case Place::Kind::kDisk:
      return Refused(file, "'" + file.path + "' is a disk, and everything on it would be lost",
                     "name a file");
  }
  return {};
}

Result<Place> FindAndJudge(const ResultFile& file) {
  auto place = FindPlace(file.path);
  if (!place) return Refused(file, place.error().text, place.error().hint);
  if (auto judged = JudgePlace(file, *place); !judged) return judged.error();
  return place;
}

// ---- writing ----

// Holds back the signals of failed writes in this thread: they are errors.
class NoSignals {
 public:
  NoSignals() {
    sigemptyset(&ours_);
    for (const int of_a_write : {SIGPIPE, SIGXFSZ}) sigaddset(&ours_, of_a_write);
    pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  }
  ~NoSignals() {
    const timespec at_once{};
    while (sigtimedwait(&ours_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t ours_, before_;
};

// A FIFO can be opened once somebody reads it.
Result<UniqueFd> OpenThrough(const std::string& path) {
  constexpr int kBetweenMs = 20;
  const int64_t deadline_ns = MonotonicNs() + kReaderPatienceNs;
  while (true) {
    UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (fd.valid()) {
      struct stat status {};
      if (fstat(fd.get(), &status) != 0 || KindOf(status.st_mode) != Place::Kind::kThrough)
        return Error{ErrorCode::kUnavailable, "'" + path + "' is another file now", ""};
      (void)fcntl(fd.get(), F_SETFL, O_WRONLY);
      return fd;
    }
    if (errno != ENXIO) return ErrnoError("cannot open '" + path + "'", errno);
    if (MonotonicNs() > deadline_ns)
      return Error{ErrorCode::kTimeout, "nobody reads from '" + path + "'", "start its reader first"};
    poll(nullptr, 0, kBetweenMs);
  }
}

// Not for regular files.
Result<UniqueFd> OpenPlace(const Place& place) {
  if (place.kind == Place::Kind::kThrough) return OpenThrough(place.path);
  std::FILE* const printed = place.fd == STDOUT_FILENO   ? stdout
                             : place.fd == STDERR_FILENO ? stderr
                                                         : nullptr;
  if (printed) (void)std::fflush(printed);
  UniqueFd fd(fcntl(place.fd, F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoError("cannot write to descriptor " + std::to_string(place.fd), errno);
  return fd;
}

bool IsRegular(const Place& place) {
  return place.kind == Place::Kind::kNothing || place.kind == Place::Kind::kRegular;
}

Result<void> ReplaceRegular(const ResultFile& file, const Place& place, std::string_view text) {
  const bool exists = place.kind == Place::Kind::kRegular;
  // One of this user's keeps what it allows to others.
  const bool keeps = exists && place.status.st_uid == geteuid();
  const NoSignals no_signals;
  return WriteFileAtOnce(place.path, text, keeps ? place.status.st_mode & 0777 : file.mode,
                         exists || file.force ? IfThere::kReplace : IfThere::kRefuse);
}

// The place that it was written to. Where something was put into an empty one meanwhile, say by another fullbore with
// the same results, that is judged, too.
Result<Place> WriteRegular(const ResultFile& file, const Place& place, std::string_view text) {
  auto written = ReplaceRegular(file, place, text);
  if (written) return place;
  if (place.kind != Place::Kind::kNothing) return written.error();
  auto again = FindAndJudge(file);
  if (!again) return again.error();
  if (again->kind != Place::Kind::kRegular) return written.error();
  if (written = ReplaceRegular(file, *again, text); !written) return written.error();
  return again;
}

std::string NameForMessages(const std::string& path) {
  return path == "-" ? "standard output" : "'" + path + "'";
}

}  // namespace

const ResultFormat kJsonResult = {"JSON", IsOurJson, true};
const ResultFormat kHtmlResult = {"a page", IsOurHtml, false};
const ResultFormat kDiffResult = {"a diff", IsOurDiff, false};
const ResultFormat kTraceResult = {"a window of a trace", IsOurTrace, true};

bool ResultFile::IsStandardOutput() const {
  if (path == "-") return true;
  const auto place = wanted() ? FindPlace(path) : Place();
  return place && place->kind == Place::Kind::kDescriptor && place->fd == STDOUT_FILENO;
}

Result<void> ResultFile::Judge() const {
  if (!wanted()) return {};
  if (const auto place = FindAndJudge(*this); !place) return place.error();
  return {};
}

Result<void> ResultFile::Write(std::string_view text) const {
  const auto place = FindAndJudge(*this);
  if (!place) return place.error();
  if (IsRegular(*place)) {
    const auto written = WriteRegular(*this, *place, text);
    return written ? Result<void>() : written.error();
  }
  const auto fd = OpenPlace(*place);
  if (!fd) return fd.error();
  return WriteToEnd(fd->get(), text, NameForMessages(path));
}

Result<UniqueFd> ResultFile::Open() const {
  const auto place = FindAndJudge(*this);
  if (!place) return place.error();
  if (!IsRegular(*place)) return OpenPlace(*place);
  const auto begun = WriteRegular(*this, *place, "");
  if (!begun) return begun.error();
  UniqueFd fd(open(begun->path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY));
  if (!fd.valid()) return ErrnoError("cannot write '" + path + "'", errno);
  return fd;
}

bool ResultFile::IsSameAs(const ResultFile& other) const {
  if (!wanted() || !other.wanted()) return false;
  if (IsStandardOutput() || other.IsStandardOutput()) return IsStandardOutput() && other.IsStandardOutput();
  const auto one = FindPlace(path), two = FindPlace(other.path);
  return one && two && IsRegular(*one) && one->path == two->path;
}

Result<void> WriteToEnd(int fd, std::string_view text, const std::string& name) {
  const NoSignals no_signals;
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // somebody who has the same pipe made it so
      pollfd ready = {fd, POLLOUT, 0};
      poll(&ready, 1, -1);
      continue;
    }
    if (n < 0) {
      const bool gone = errno == EPIPE;
      Error error = ErrnoError("cannot write " + name, errno);
      if (gone) error.code = ErrorCode::kUnavailable;
      return error;
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace fullbore
