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

// Errors (kNotFound or kInvalidArgument) where the options are wrong.
Result<fleet::Store> OpenStore(const StoreFlags& flags);
Result<fleet::Range> RangeOf(const StoreFlags& flags);  // until now

}  // namespace fullbore::cli
