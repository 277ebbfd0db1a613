// What the names of host spans mean, whichever tool recorded them: PyTorch operators, ranges that frameworks
// and users put around parts of a loop (record_function, NVTX), Python functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/device_trace.h"

namespace fullbore::ingest {

timeline::SpanKind KindOfName(std::string_view name, timeline::SpanKind otherwise);

// "torch/utils/data/dataloader.py(628): __next__"; nothing for library frames.
std::optional<timeline::SpanKind> KindOfFrame(std::string_view name);

// Ranges that the user named steps ("step 12", "iteration", "train_step#7"): collected while reading, and
// used if the profiler itself marked no steps.
class NamedSteps {
 public:
  void Offer(std::string_view name, int64_t begin_ns, int64_t end_ns, uint16_t thread);

  // Into trace->steps, with a note. Call before DeviceTrace::Finish.
  void PutInto(timeline::DeviceTrace* trace) &&;

 private:
  std::map<std::string, std::vector<timeline::StepMark>> by_stem_;
};

}  // namespace fullbore::ingest
