#include "cli/fleet_store.h"

#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "cli/trials.h"

namespace fullbore::cli {

void AddStore(CLI::App& app, StoreFlags& flags) {
  app.add_option("--from", flags.target,
                 "The database, as `fleet collect` wrote it: a file, or postgresql://HOST/NAME")
      ->type_name("DATABASE")
      ->default_str(kFleetFile);
  app.add_option("--since", flags.since, "Only runs that began within this time, as 7d or 12h (default: all)")
      ->type_name("TIME");
}

Result<fleet::Range> RangeOf(const StoreFlags& flags) {
  fleet::Range range;
  if (flags.since.empty()) return range;
  const auto seconds = ParsePositiveSeconds("--since", flags.since);
  if (!seconds) return seconds.error();
  range.since_unix_ns = WallNs() - static_cast<int64_t>(*seconds * 1e9);
  return range;
}

}  // namespace fullbore::cli
