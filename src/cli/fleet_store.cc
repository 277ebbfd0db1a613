#include "cli/fleet_store.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/text.h"
#include "cli/trials.h"
#include "fleet/store.h"

namespace fullbore::cli {

namespace {

constexpr double kLongestS = 1e9;  // thirty years

}  // namespace

void AddStore(CLI::App& app, StoreFlags& flags) {
  app.add_option("--from", flags.file, "The database, as `fleet collect` wrote it")
      ->type_name("FILE")
      ->default_str(kFleetFile);
  app.add_option("--since", flags.since, "Only runs that began within this time, as 7d or 12h (default: all)")
      ->type_name("TIME");
}

Result<std::vector<fleet::RunAccount>> RunsIn(const StoreFlags& flags) {
  int64_t since_ns = 0;
  if (!flags.since.empty()) {
    const auto seconds = ParsePositiveSeconds("--since", flags.since);
    if (!seconds) return seconds.error();
    since_ns = WallNs() - static_cast<int64_t>(std::min(*seconds, kLongestS) * 1e9);
  }
  std::error_code ignored;
  if (!std::filesystem::exists(flags.file, ignored)) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no '{}'", flags.file),
                 fmt::format("fullbore fleet collect DIR --to {} makes it", ShellQuote(flags.file))};
  }
  auto store = fleet::Store::OpenForReading(flags.file);
  if (!store) return store.error();
  return store->Runs(since_ns);
}

}  // namespace fullbore::cli
