// `fullbore explain snapshot.pickle`: PyTorch's memory snapshots.
#pragma once

#include <string>
#include <vector>

#include "base/result_file.h"

namespace fullbore::cli {

struct SnapshotFlags {
  std::string path;
  ResultFile json, html;
  std::vector<std::string> what_if;  // "batch=2x"
  bool quiet = false;
};

// Whether the words of a command line mean one: a single file that begins as a pickle.
bool MeansSnapshot(const std::vector<std::string>& words);

// How many times as large a batch each of them asks about.
Result<std::vector<double>> BatchesNamed(const std::vector<std::string>& what_if);

// Returns the exit status.
int ExplainSnapshot(const SnapshotFlags& flags);

}  // namespace fullbore::cli
