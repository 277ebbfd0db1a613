// Which files the user's arguments refer to, and what each of them is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/recording.h"

namespace fullbore::ingest {

enum class FileKind : uint8_t { kJson, kSqlite, kArchive, kForeign };

struct TraceFile {
  std::string path;
  FileKind kind = FileKind::kForeign;
  // Set if each rank's traces are in a directory of their own and only its name tells the rank.
  int directory_rank = -1;
};

struct TraceFiles {
  std::vector<TraceFile> files;        // in the order given; those of a directory by name
  std::vector<std::string> foreign;    // files in directories that are not traces
  std::vector<record::Message> notes;  // which directories the traces were taken from; a choice is a warning
};

// Judged by the first bytes, decompressed: names may mislead. kArchive is tar or zip.
Result<FileKind> KindOfFile(const std::string& path);

// A directory that holds no traces itself is searched recursively, as TensorBoard's logs need it
// (logs/plugins/profile/2026_11_21/host.pt.trace.json.gz), to a bounded depth and number of files and without
// following links to directories. Directories named after ranks ("rank0", "rank1") are one recording;
// otherwise the directory with the newest trace is taken. A file that is known to be something else is an error that
// says what it is and how it becomes a trace (foreign_formats.h).
Result<TraceFiles> FindTraceFiles(const std::vector<std::string>& paths);

// What the file is and how it becomes a trace, if it is known to be something else (foreign_formats.h).
std::optional<Error> ForeignFile(const std::string& path);

// "worker3_step_12.pt.trace.json" -> 3, "rank-0.json" -> 0; -1 if the name says nothing.
int RankInName(const std::string& path);

}  // namespace fullbore::ingest
