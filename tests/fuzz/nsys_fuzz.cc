// An Nsight Systems export, from the SQLite file to the summaries of its ranks.
#include "explain/ingest/nsys/nsys_reader.h"
#include "fuzzed_file.h"
#include "timeline/device/rank.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fullbore::fuzz::FuzzedFile file(".sqlite");
  auto traces = fullbore::ingest::nsys::ReadNsys(file.Write(data, size));
  if (!traces) return 0;
  for (auto& trace : *traces) (void)fullbore::timeline::SummariseRank(trace);
  return 0;
}
