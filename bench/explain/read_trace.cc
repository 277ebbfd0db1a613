// Reads traces into a recording and prints how much it was; explain_bench.py measures its time and memory.
#include <cstdio>
#include <string>
#include <vector>

#include "explain/ingest/ingest.h"

int main(int argc, char** argv) {
  using namespace fullbore;
  int64_t events = 0;
  const auto recording = ingest::ReadTraces(std::vector<std::string>(argv + 1, argv + argc));
  if (!recording) {
    std::fprintf(stderr, "%s\n", ToString(recording.error()).c_str());
    return 1;
  }
  int64_t busy_ns = 0;
  for (const record::RankInfo& rank : recording->stages.at(0).ranks) {
    busy_ns += rank.busy_ns.value_or(0);
    const auto found = rank.facts.find("trace_events");
    if (found != rank.facts.end()) events += std::stoll(found->second);
  }
  std::printf("{\"events\": %lld, \"busy_ns\": %lld}\n", static_cast<long long>(events),
              static_cast<long long>(busy_ns));
  return 0;
}
