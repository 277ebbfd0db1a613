// What the parts of `fullbore fleet` that read the database share.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/subcommand.h"
#include "fleet/account.h"

namespace fullbore::cli {

struct StoreFlags {
  std::string file = kFleetFile, since;
};

void AddStore(CLI::App& app, StoreFlags& flags);  // --from and --since

// An error (kNotFound or kInvalidArgument) where the options are wrong.
Result<std::vector<fleet::RunAccount>> RunsIn(const StoreFlags& flags);

}  // namespace fullbore::cli
