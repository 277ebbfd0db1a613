// PyTorch-profiler traces (Kineto JSON) into a DeviceTrace, in one pass over the text. Memory follows the
// number of events, not the text: stacks, shapes and what no finding needs are dropped on the way.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "explain/ingest/byte_source.h"
#include "timeline/device/trace.h"

namespace fullbore::ingest::kineto {

struct ReadOptions {
  bool stacks = false;  // keep all Python functions, not only those that say what the host waits for
  std::function<void(int64_t position, int64_t size)> progress;  // bytes of the file, every few megabytes
};

// `name` is for messages. A truncated text is read as far as it goes, and the trace's `notes` say so; an
// error if it is not a trace at all.
Result<timeline::DeviceTrace> ReadKineto(std::unique_ptr<ByteSource> source, const std::string& name,
                                         const ReadOptions& options = {});

}  // namespace fullbore::ingest::kineto
