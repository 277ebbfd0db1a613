#include "explain/ingest/trace_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>

#include "base/text.h"
#include "explain/ingest/byte_source.h"
#include "explain/ingest/foreign_formats.h"

namespace fullbore::ingest {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeadBytes = 512;  // a tar header
constexpr size_t kTarMagicAt = 257;
constexpr std::string_view kZipMagic = "PK\3\4";

constexpr int kMaxDepth = 8;            // TensorBoard's traces lie four below the directory of all logs
constexpr size_t kMaxEntries = 20'000;  // examined, over all directories together

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The first bytes, decompressed.
Result<std::string> HeadOf(const std::string& path) {
  auto source = OpenBytes(path);
  if (!source) return source.error();
  std::string head(kHeadBytes, '\0');
  size_t size = 0;
  while (size < head.size()) {
    auto got = (*source)->Read(head.data() + size, head.size() - size);
    if (!got || *got == 0) break;  // damage further on is for the reader to report
    size += *got;
  }
  head.resize(size);
  return head;
}

FileKind KindOf(std::string_view head) {
  if (head.starts_with("SQLite format 3")) return FileKind::kSqlite;
  if (head.size() == kHeadBytes && head.compare(kTarMagicAt, 5, "ustar") == 0) return FileKind::kArchive;
  if (head.starts_with(kZipMagic)) return FileKind::kArchive;
  const std::string_view text = Trim(WithoutByteOrderMark(head));
  if (text.starts_with('{') || text.starts_with('[')) return FileKind::kJson;
  return FileKind::kForeign;
}

// Directories of logs also hold other JSON files and databases: below the directory that was named, a file must
// look like a trace.
bool LooksLikeATrace(const std::string& path, FileKind kind, std::string_view head) {
  if (kind == FileKind::kSqlite) return path.ends_with(".sqlite");
  if (kind != FileKind::kJson) return false;
  constexpr std::string_view kMembers[] = {"\"schemaVersion\"",    "\"traceEvents\"",
                                           "\"deviceProperties\"", "\"distributedInfo\"",
                                           "\"displayTimeUnit\"",  "\"ph\""};
  return std::any_of(std::begin(kMembers), std::end(kMembers),
                     [&](std::string_view member) { return head.find(member) != std::string_view::npos; });
}

// What one directory holds, without its subdirectories.
struct Directory {
  std::string path;
  std::vector<TraceFile> traces;
  std::vector<TraceFile> likely;  // those that look like a trace and not like other JSON
  std::vector<std::string> foreign;
  std::optional<std::string> named;      // the first foreign one of which it is known what it is
  std::vector<std::string> directories;  // without links, which may be circular, and hidden ones
  size_t entries = 0;
};

Result<Directory> List(const std::string& path, size_t most_entries) {
  Directory listed{path, {}, {}, {}, {}, {}, 0};
  std::error_code status;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(path, status), end; !status && entry != end; entry.increment(status)) {
    if (++listed.entries > most_entries) break;
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) {
      names.push_back(entry->path().string());
    } else if (entry->is_directory(ignored) && !entry->is_symlink(ignored) &&
               !entry->path().filename().string().starts_with('.')) {
      listed.directories.push_back(entry->path().string());
    }
  }
  if (status) return ErrnoError("cannot list '" + path + "'", status.value());
  std::sort(names.begin(), names.end());
  std::sort(listed.directories.begin(), listed.directories.end());
  for (const std::string& name : names) {
    const auto head = HeadOf(name);
    const FileKind kind = head ? KindOf(*head) : FileKind::kForeign;
    // Checkpoints are zip files, too.
    const bool other_zip = head && head->starts_with(kZipMagic) && !name.ends_with(".zip");
    const bool named = head && ForeignFormat(name, *head);
    if (named && !listed.named) listed.named = name;
    if (kind == FileKind::kForeign || other_zip || named) {
      listed.foreign.push_back(name);
      continue;
    }
    listed.traces.push_back({name, kind});
    if (LooksLikeATrace(name, kind, *head)) listed.likely.push_back(listed.traces.back());
  }
  return listed;
}

struct Search {
  std::vector<Directory> found;      // with likely traces
  std::optional<std::string> named;  // as in Directory
  bool complete = true;
};

// Level by level, so that what is near is found even if something deep never ends.
Search SearchBelow(const Directory& top) {
  Search search;
  size_t left = kMaxEntries - std::min(kMaxEntries, top.entries);
  std::vector<std::string> level = top.directories;
  for (int depth = 0; depth < kMaxDepth && !level.empty(); ++depth) {
    std::vector<std::string> next;
    for (const std::string& path : level) {
      if (left == 0) return search.complete = false, search;
      auto listed = List(path, left);
      if (!listed) continue;  // not readable: the rest counts
      left -= std::min(left, listed->entries);
      next.insert(next.end(), listed->directories.begin(), listed->directories.end());
      if (!search.named) search.named = listed->named;
      if (!listed->likely.empty()) search.found.push_back(std::move(*listed));
    }
    level = std::move(next);
  }
  search.complete = level.empty();
  return search;
}

fs::file_time_type NewestOf(const Directory& directory) {
  auto newest = fs::file_time_type::min();
  for (const TraceFile& file : directory.likely) {
    std::error_code ignored;
    newest = std::max(newest, fs::last_write_time(file.path, ignored));
  }
  return newest;
}

// "run/rank0" and "run/rank1" hold one recording.
bool AreTheRanksOfOne(const std::vector<Directory>& directories) {
  std::set<int> ranks;
  for (const Directory& directory : directories) {
    if (fs::path(directory.path).parent_path() != fs::path(directories.front().path).parent_path())
      return false;
    const int rank = RankInName(directory.path);
    if (rank < 0 || !ranks.insert(rank).second) return false;
  }
  return true;
}

void TakeFromBelow(const Directory& top, TraceFiles* files) {
  const auto say = [files](record::Severity severity, std::string text) {
    files->notes.push_back({std::nullopt, severity, "ingest", std::move(text)});
  };
  Search search = SearchBelow(top);
  std::vector<Directory>& found = search.found;
  if (!search.complete) {
    say(record::Severity::kInfo,
        fmt::format("'{}' was searched {} levels deep and up to {} files, and holds more", top.path,
                    kMaxDepth, kMaxEntries));
  }
  if (found.empty()) {
    if (search.named) files->foreign.push_back(*search.named);
    return;
  }
  std::vector<Directory> taken;
  if (found.size() > 1 && AreTheRanksOfOne(found)) {
    say(record::Severity::kWarning,
        fmt::format("'{}' holds {} directories named after ranks: taken as the ranks of one run", top.path,
                    found.size()));
    taken = std::move(found);
    for (Directory& each : taken) {
      for (TraceFile& file : each.likely) file.directory_rank = RankInName(each.path);
    }
  } else if (found.size() > 1) {
    // Those of the same age in order of their names, which are often dates.
    std::sort(found.begin(), found.end(),
              [](const Directory& a, const Directory& b) { return a.path < b.path; });
    const auto newest = std::max_element(found.rbegin(), found.rend(),
                                         [](auto& a, auto& b) { return NewestOf(a) < NewestOf(b); });
    const Directory& other = &*newest == &found.front() ? found.back() : found.front();
    say(record::Severity::kWarning,
        fmt::format(
            "'{}' holds traces in {} directories: the newest, '{}', is taken; name another to explain "
            "it instead, as '{}'",
            top.path, found.size(), newest->path, other.path));
    taken.push_back(std::move(*newest));
  } else {
    say(record::Severity::kInfo, fmt::format("the traces are taken from '{}'", found.front().path));
    taken = std::move(found);
  }
  for (Directory& each : taken) {
    std::move(each.likely.begin(), each.likely.end(), std::back_inserter(files->files));
    std::move(each.foreign.begin(), each.foreign.end(), std::back_inserter(files->foreign));
  }
}

}  // namespace

Result<FileKind> KindOfFile(const std::string& path) {
  const auto head = HeadOf(path);
  if (!head) return head.error();
  return KindOf(*head);
}

std::optional<Error> ForeignFile(const std::string& path) {
  const auto head = HeadOf(path);
  return head ? ForeignFormat(path, *head) : std::nullopt;
}

Result<TraceFiles> FindTraceFiles(const std::vector<std::string>& paths) {
  TraceFiles found;
  for (const std::string& path : paths) {
    std::error_code status;
    if (!fs::is_directory(path, status)) {
      const auto head = HeadOf(path);
      if (!head) return head.error();
      // A file that the user named and nobody knows is taken for a trace: its reader's error says where it is none.
      FileKind kind = KindOf(*head);
      if (kind == FileKind::kForeign) kind = FileKind::kJson;
      if (ForeignFormat(path, *head)) kind = FileKind::kForeign;
      found.files.push_back({path, kind});
      continue;
    }
    auto listed = List(path, kMaxEntries);
    if (!listed) return listed.error();
    const size_t before = found.files.size();
    const bool archive = std::any_of(listed->traces.begin(), listed->traces.end(),
                                     [](const TraceFile& file) { return file.kind == FileKind::kArchive; });
    if (listed->likely.empty() && !archive) TakeFromBelow(*listed, &found);
    if (found.files.size() > before) continue;
    std::move(listed->traces.begin(), listed->traces.end(), std::back_inserter(found.files));
    std::move(listed->foreign.begin(), listed->foreign.end(), std::back_inserter(found.foreign));
  }
  if (found.files.empty()) {
    for (const std::string& path : found.foreign) {
      if (auto foreign = ForeignFile(path)) return *foreign;
    }
    std::string where = paths.empty() ? "" : " in '" + paths.front() + "'";
    for (const record::Message& note : found.notes) where += "; " + note.text;
    return Error{ErrorCode::kNotFound, "no trace found" + where,
                 "name a PyTorch-profiler trace (.json, .json.gz), an Nsight Systems export (.sqlite), or a "
                 "directory"};
  }
  return found;
}

int RankInName(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  for (const std::string_view word : {"rank", "worker"}) {
    size_t at = name.find(word);
    while (at != std::string::npos) {
      size_t digits = at + word.size();
      while (digits < name.size() && (name[digits] == '_' || name[digits] == '-' || name[digits] == '.'))
        ++digits;
      size_t end = digits;
      while (end < name.size() && IsDigit(name[end])) ++end;
      constexpr size_t kMaxDigits = 6;  // longer numbers are times
      if (end > digits && end - digits <= kMaxDigits) {
        return static_cast<int>(*ParseInt(std::string_view(name).substr(digits, end - digits)));
      }
      at = name.find(word, at + 1);
    }
  }
  return -1;
}

}  // namespace fullbore::ingest
