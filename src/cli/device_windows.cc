#include "cli/device_windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/guarded_file.h"
#include "base/temporary_directory.h"
#include "explain/ingest/ingest.h"

namespace fullbore::cli {

Result<record::Recording> ReadDeviceWindows(const record::Stage& stage) {
  auto directory = TemporaryDirectory::Make();
  if (!directory) return directory.error();
  for (const record::DeviceWindow& window : stage.device_windows) {
    const std::string path = fmt::format("{}/rank{}.json.zst", directory->path(), window.rank);
    if (auto written = WriteFileAtOnce(path, window.trace, kPrivateFile); !written) return written.error();
  }
  return ingest::ReadTraces({directory->path()});
}

namespace {

// Calls take(of the window, of the run) for each rank that both have.
template <typename Take>
void ForEachRank(const record::Recording& trace, record::Stage& run, Take take) {
  for (const record::RankInfo& seen : trace.stages.front().ranks) {
    const auto rank = std::ranges::find(run.ranks, seen.rank, &record::RankInfo::rank);
    if (rank != run.ranks.end()) take(seen, *rank);
  }
}

}  // namespace

void TakeOperatorsOf(const record::Recording& trace, record::Stage& run) {
  ForEachRank(trace, run, [](const record::RankInfo& seen, record::RankInfo& rank) {
    rank.operators = seen.operators;
    rank.host_work = seen.host_work;
  });
}

void TakeTablesOf(const record::Recording& trace, record::Stage& run) {
  ForEachRank(trace, run, [](const record::RankInfo& seen, record::RankInfo& rank) {
    rank.tables = seen.tables;
    rank.timeline = seen.timeline;
    rank.roofline = seen.roofline;
  });
}

}  // namespace fullbore::cli
