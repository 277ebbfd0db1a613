// A trace made by hand, for tests of what a recorder got wrong or left out. Times in microseconds.
#pragma once

#include <string>

#include "timeline/device/trace.h"

namespace fullbore::timeline::testing {

class MadeTrace {
 public:
  MadeTrace() {
    trace.threads = {"1/1", "1/2"};
    trace.streams = {"0/7"};
  }

  MadeTrace& Call(const char* name, int64_t begin, int64_t end, uint16_t thread = 0) {
    const CallKind kind = ClassifyCall(name);
    trace.calls.push_back({begin * 1000, end * 1000, ++next_id_, trace.names.Find(name), thread, kind});
    return *this;
  }
  // Of the last call, as any number of them.
  MadeTrace& Ran(int64_t begin, int64_t end, uint16_t stream = 0, const char* name = "volta_sgemm") {
    DeviceOp op;
    op.begin_ns = begin * 1000;
    op.end_ns = end * 1000;
    op.correlation = next_id_;
    op.name = trace.names.Find(name);
    op.stream = stream;
    op.kernel = true;
    op.lane = ClassifyKernel(name);
    trace.ops.push_back(op);
    return *this;
  }
  MadeTrace& Launch(int64_t at, uint16_t thread = 0) { return Call("cudaLaunchKernel", at, at + 5, thread); }
  MadeTrace& Step(int64_t number, int64_t begin, int64_t end, uint16_t thread = 0) {
    trace.steps.push_back({begin * 1000, end * 1000, number, thread});
    return *this;
  }

  DeviceTrace& Finished() {
    trace.Finish();
    return trace;
  }

  DeviceTrace trace;

 private:
  uint64_t next_id_ = 0;
};

}  // namespace fullbore::timeline::testing
