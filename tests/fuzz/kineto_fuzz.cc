// A PyTorch profiler trace, from its JSON to the summary of its rank and the work of its operators.
#include <cstdint>

#include "explain/ingest/kineto/kineto_reader.h"
#include "explain/roofline/roofline.h"
#include "timeline/device/rank.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fullbore::ingest::kineto::ReadOptions options;
  options.stacks = size % 2 == 1;
  auto trace = fullbore::ingest::kineto::ReadKineto(fullbore::ingest::BytesInMemory(text), "t.json", options);
  if (!trace) return 0;
  (void)fullbore::timeline::SummariseRank(*trace);
  (void)fullbore::roofline::Judge(*trace, fullbore::timeline::FindSteps(*trace).steps,
                                  fullbore::roofline::DeviceNamed("Tesla V100-SXM2-16GB"));
  return 0;
}
