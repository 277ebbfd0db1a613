// What the parts of `fullbore fleet` that read the database share.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/subcommand.h"
#include "fleet/store.h"

namespace fullbore::cli {

struct StoreFlags {
  std::string target = kFleetFile, since;
};

void AddStore(CLI::App& app, StoreFlags& flags);  // --from and --since

// Until now. An error (kInvalidArgument) where --since is no time.
Result<fleet::Range> RangeOf(const StoreFlags& flags);

}  // namespace fullbore::cli
