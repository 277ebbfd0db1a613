// What PyTorch's allocator of device memory holds, from the events of a training process (EventKind::kMemory, once a
// second) to readings.
#pragma once

#include <vector>

#include "record/channel.h"
#include "record/run_writer.h"

namespace fullbore::collect {

class AllocatorMeter {
 public:
  void OnEvent(const record::ChannelRecord& event);

  // Moves the readings since the last call into `writer`.
  void Drain(int rank, record::RunWriter& writer);

 private:
  std::vector<record::ChannelRecord> events_;
};

}  // namespace fullbore::collect
