#include "measure/collect/allocator_meter.h"

#include <string>
#include <utility>

#include "record/metrics.h"

namespace fullbore::collect {

namespace {

using record::Metric;

constexpr size_t kMaxWaiting = 10'000;  // before a process trains, nobody asks for them
// After the groups of the probes, which count from 0, and those of loaders (loader_meter.cc).
constexpr int kFirstGroup = 1'000'000;

}  // namespace

void AllocatorMeter::OnEvent(const record::ChannelRecord& event) {
  if (events_.size() >= kMaxWaiting) events_.clear();
  events_.push_back(event);
}

void AllocatorMeter::Drain(int rank, record::RunWriter& writer) {
  for (const record::ChannelRecord& event : events_) {
    for (const auto& [metric, value] :
         {std::pair(Metric::kTorchAllocated, event.a), std::pair(Metric::kTorchReserved, event.b),
          std::pair(Metric::kTorchAllocatedPeak, event.c), std::pair(Metric::kTorchRetries, event.d)}) {
      writer.AppendReading(kFirstGroup + rank, record::KeyOf(metric, {{"rank", std::to_string(rank)}}),
                           event.end_ns, static_cast<double>(value));
    }
  }
  events_.clear();
}

}  // namespace fullbore::collect
