// Which files are meant by what the user named, and what each of them is.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace fullbore::ingest {

enum class FileKind : uint8_t { kJson, kSqlite, kTar, kForeign };

struct TraceFile {
  std::string path;
  FileKind kind = FileKind::kForeign;
};

struct TraceFiles {
  std::vector<TraceFile> files;      // in the order given; those of a directory by name
  std::vector<std::string> foreign;  // files of directories that are no traces
};

// By the first bytes, decompressed: names lie.
Result<FileKind> KindOfFile(const std::string& path);

Result<TraceFiles> FindTraceFiles(const std::vector<std::string>& paths);

// "worker3_step_12.pt.trace.json" -> 3, "rank-0.json" -> 0; -1 where the name says nothing.
int RankInName(const std::string& path);

}  // namespace fullbore::ingest
