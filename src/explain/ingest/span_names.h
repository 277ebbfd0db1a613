// What the names of host spans mean, whichever tool recorded them: PyTorch operators, ranges that frameworks
// and users put around parts of a loop (record_function, NVTX), Python functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/device/trace.h"

namespace fullbore::ingest {

timeline::SpanKind KindOfName(std::string_view name, timeline::SpanKind otherwise);

// "torch/utils/data/dataloader.py(628): __next__"; nothing for library frames.
std::optional<timeline::SpanKind> KindOfFrame(std::string_view name);

// Ranges that the user named steps ("step 12", "iteration", "train_step#7"): collected while reading, and
// used if the profiler itself marked no steps. And the iterations of a serving engine, which are what it calls a step,
// whatever the profiler marked: used unless an optimizer steps in the trace, as where a training generates samples.
class NamedSteps {
 public:
  void Offer(std::string_view name, int64_t begin_ns, int64_t end_ns, uint16_t thread);
  void OfferFrame(std::string_view name, int64_t begin_ns, int64_t end_ns, uint16_t thread);  // of Python
  // The same ranges as the device's own track shows them; used where the host's were not recorded.
  void OfferOnDevice(std::string_view name, int64_t begin_ns, int64_t end_ns);

  // Into trace->steps, with a note. Call before DeviceTrace::Finish.
  void PutInto(timeline::DeviceTrace* trace) &&;

 private:
  using Marks = std::vector<timeline::StepMark>;
  void PutIterationsInto(timeline::DeviceTrace* trace);

  std::map<std::string, Marks> by_stem_;
  std::string engine_;
  // Of the engine: its named ranges with what they say, its bare ranges, those on the device, its functions.
  Marks named_, bare_, on_device_, frames_;
};

// What the names of a trace say about the program: facts for the report, and the settings of what may be changed.
struct Program {
  std::string optimizer;  // "AdamW"; the one that steps most
  std::string wrapper;    // "DistributedDataParallel", "FullyShardedDataParallel", "fully_shard", "DeepSpeed"
  bool compiled = false;  // by torch.compile
};
Program ProgramIn(const timeline::DeviceTrace& trace);

}  // namespace fullbore::ingest
