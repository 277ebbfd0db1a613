#include "explain/ingest/trace_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "explain/ingest/byte_source.h"

namespace fullbore::ingest {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeadBytes = 512;  // a tar header
constexpr size_t kTarMagicAt = 257;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Result<FileKind> KindOfFile(const std::string& path) {
  auto source = OpenBytes(path);
  if (!source) return source.error();
  std::string head(kHeadBytes, '\0');
  size_t size = 0;
  while (size < head.size()) {
    auto got = (*source)->Read(head.data() + size, head.size() - size);
    if (!got || *got == 0) break;  // a file damaged further on is its reader's to report
    size += *got;
  }
  head.resize(size);
  if (head.starts_with("SQLite format 3")) return FileKind::kSqlite;
  if (size == kHeadBytes && head.compare(kTarMagicAt, 5, "ustar") == 0) return FileKind::kTar;
  const std::string_view text = Trim(head);
  if (text.starts_with('{') || text.starts_with('[')) return FileKind::kJson;
  return FileKind::kForeign;
}

Result<TraceFiles> FindTraceFiles(const std::vector<std::string>& paths) {
  TraceFiles found;
  for (const std::string& path : paths) {
    std::error_code status;
    if (!fs::is_directory(path, status)) {
      auto kind = KindOfFile(path);
      if (!kind) return kind.error();
      // A file that the user named is a trace until its reader finds out: its error says more than "foreign".
      found.files.push_back({path, *kind == FileKind::kForeign ? FileKind::kJson : *kind});
      continue;
    }
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path, status)) {
      if (entry.is_regular_file(status)) names.push_back(entry.path().string());
    }
    if (status) return ErrnoError("cannot list '" + path + "'", status.value());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      auto kind = KindOfFile(name);
      if (kind && *kind != FileKind::kForeign)
        found.files.push_back({name, *kind});
      else
        found.foreign.push_back(name);
    }
  }
  if (found.files.empty()) {
    const std::string where = paths.empty() ? "" : " in '" + paths.front() + "'";
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
      constexpr size_t kMostDigits = 6;  // longer ones are times
      if (end > digits && end - digits <= kMostDigits) {
        return static_cast<int>(*ParseInt(std::string_view(name).substr(digits, end - digits)));
      }
      at = name.find(word, at + 1);
    }
  }
  return -1;
}

}  // namespace fullbore::ingest
