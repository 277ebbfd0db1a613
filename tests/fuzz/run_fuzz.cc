// The bytes of a run file: SQLite's pages and their content.
#include "fuzzed_file.h"
#include "fuzzed_run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fullbore::fuzz::FuzzedFile file(".fbr");
  fullbore::fuzz::ThroughAllReports(file.Write(data, size));
  return 0;
}
