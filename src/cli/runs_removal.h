// `fullbore runs --delete` and `--prune`: which runs go, said before anything does, and then their end.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/run_order.h"

namespace fullbore::cli {

struct RemovalFlags {
  std::vector<std::string> names;  // of --delete
  bool prune = false, yes = false;
  std::string older_than;
  std::optional<size_t> keep_newest;
  std::optional<uint64_t> at_most_bytes;

  bool wanted() const { return prune || !names.empty(); }
};

void AddRemovalFlags(CLI::App& app, RemovalFlags& flags);

// An error, for exit status 2, where the flags do not say what to do.
Result<void> JudgeRemoval(const RemovalFlags& flags);

// `runs`: of the directory; of a prune those that the filters leave. Returns the exit status.
int RemoveRuns(const RemovalFlags& flags, const std::string& directory, std::vector<serve::NamedRun> runs);

// Which of `runs` a prune would delete, the oldest first: those beyond one of the limits. What is held, what has a note
// and what a person named stays, and counts for --keep-newest and --at-most all the same.
std::vector<serve::NamedRun> ThoseBeyond(const RemovalFlags& flags, std::vector<serve::NamedRun> runs,
                                         int64_t wall_ns);

// Why a prune leaves the run; empty where it does not.
std::string WhySpared(const watch::KnownRun& run);

}  // namespace fullbore::cli
