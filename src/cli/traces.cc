#include "cli/traces.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/trace_page.h"
#include "explain/analyze/like_hta.h"
#include "explain/ingest/trace_files.h"
#include "record/run_of_nodes.h"
#include "record/run_reader.h"

namespace fullbore::cli {

namespace fs = std::filesystem;

namespace {

using record::kRunSuffix;

constexpr int64_t kSilentNs = 500'000'000;  // reading that takes less shows no progress

// Judged by its first bytes. An Nsight Systems export is an SQLite file like a run file: only the tables
// tell.
bool IsRunFile(const std::string& path) {
  if (path.ends_with(kRunSuffix)) return true;
  const auto kind = ingest::KindOfFile(path);
  return kind && *kind == ingest::FileKind::kSqlite && record::ReadRunSummary(path).ok();
}

}  // namespace

bool LooksLikePath(const std::string& word) {
  constexpr std::array<std::string_view, 13> kSuffixes = {".json",    ".gz",     ".zst", ".sqlite", ".tar",
                                                          kRunSuffix, ".tgz",    ".pt",  ".xz",     ".bz2",
                                                          ".zip",     ".pickle", ".pkl"};
  return word.find('/') != std::string::npos ||
         std::any_of(kSuffixes.begin(), kSuffixes.end(), [&](auto suffix) { return word.ends_with(suffix); });
}

bool MeansTraces(const std::vector<std::string>& words) {
  if (words.size() != 1) return words.size() > 1;
  if (words[0] == kNewestRun) return false;
  std::error_code ignored;
  if (fs::is_directory(words[0], ignored)) return !record::IsRunOfNodes(words[0]);
  if (!fs::exists(words[0], ignored)) return LooksLikePath(words[0]) && !words[0].ends_with(kRunSuffix);
  return !IsRunFile(words[0]);
}

Result<void> RefuseRuns(const std::vector<std::string>& traces) {
  for (const std::string& word : traces) {
    if (word.ends_with(kRunSuffix)) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is a recorded run, not a trace", word),
                   "explain one run at a time; fullbore compare A B takes two"};
    }
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(word, ignored)) {
      if (entry.path().extension() != kRunSuffix) continue;
      return Error{
          ErrorCode::kInvalidArgument, fmt::format("'{}' holds recorded runs, not traces", word),
          fmt::format("fullbore runs -o {0} lists them, fullbore explain -o {0} RUN explains one", word)};
    }
  }
  return {};
}

ReadingLine::ReadingLine() : terminal_(isatty(STDERR_FILENO) != 0), begun_ns_(MonotonicNs()) {}

ReadingLine::~ReadingLine() {
  if (shown_) Print(stderr, "\r\x1b[K");
}

void ReadingLine::Show(const std::string& file, int64_t position, int64_t size) {
  const int64_t elapsed_ns = MonotonicNs() - begun_ns_;
  if (!terminal_ || elapsed_ns < kSilentNs || size <= 0) return;
  constexpr int64_t kCells = 24;
  const int64_t full = std::min(kCells, position * kCells / size);
  Print(stderr, "\r\x1b[K  reading {}  [{}{}]  {} of {}", fs::path(file).filename().string(),
        std::string(static_cast<size_t>(full), '#'), std::string(static_cast<size_t>(kCells - full), '.'),
        FormatBytes(static_cast<double>(position)), FormatBytes(static_cast<double>(size)));
  std::fflush(stderr);
  shown_ = true;
}

ingest::TraceOptions TraceOptionsFor(ReadingLine* line, bool like_hta) {
  ingest::TraceOptions options;
  options.progress = [line](const std::string& file, int64_t position, int64_t size) {
    line->Show(file, position, size);
  };
  if (like_hta) options.cut = analyze::CutLikeHta;
  return options;
}

Result<record::Recording> ReadTraces(const std::vector<std::string>& paths, bool like_hta, TracePage* page) {
  ReadingLine line;
  ingest::TraceOptions options = TraceOptionsFor(&line, like_hta);
  if (page != nullptr) {
    options.stacks = true;
    options.look = [page](const timeline::DeviceTrace& trace) { page->Take(trace); };
  }
  return ingest::ReadTraces(paths, options);
}

}  // namespace fullbore::cli
