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

void TakeTablesOf(const record::Recording& trace, record::Stage& run) {
  for (const record::RankInfo& seen : trace.stages.front().ranks) {
    const auto rank = std::ranges::find(run.ranks, seen.rank, &record::RankInfo::rank);
    if (rank == run.ranks.end()) continue;
    rank->tables = seen.tables;
    rank->timeline = seen.timeline;
    rank->roofline = seen.roofline;
    rank->operators = seen.operators;
  }
}

}  // namespace fullbore::cli
