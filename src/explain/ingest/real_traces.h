// Where the tests find traces recorded by others on real GPUs: $FULLBORE_TRACES, else ../shared/traces beside
// the checkout. They are not part of the project; tests that need them say so when they skip.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/testing/source_directory.h"

namespace fullbore::ingest {

inline std::string RealTraces() {
  const char* set = std::getenv("FULLBORE_TRACES");
  return set != nullptr ? set : fullbore::testing::SourceDirectory() + "/../shared/traces";
}

inline bool HaveRealTraces() { return std::filesystem::exists(RealTraces() + "/README.md"); }

}  // namespace fullbore::ingest
