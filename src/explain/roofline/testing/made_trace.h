// Small traces of operators, launches and kernels, for tests. Times are microseconds.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "explain/roofline/testing/made_operators.h"
#include "timeline/device/trace.h"

namespace fullbore::roofline {

class MadeTrace {
 public:
  MadeTrace() {
    trace_.threads = {"main", "autograd"};
    trace_.streams = {"0/7", "0/20"};
    trace_.rank = 0;
    trace_.device_ops[0] = 1;
  }

  MadeTrace& Device(const char* name, int64_t multiprocessors) {
    trace_.devices = {name};
    trace_.multiprocessors = {multiprocessors};
    return *this;
  }
  MadeTrace& OnThread(uint16_t thread) {
    thread_ = thread;
    return *this;
  }
  MadeTrace& Op(const char* name, int64_t begin, int64_t duration,
                std::vector<OperatorInput> inputs = {Tensor({4})}) {
    OperatorShape shape = Called(name, std::move(inputs));
    shape.name = trace_.names.Find(name);
    // Equal calls share a shape, as the readers make them.
    std::string text = name + ShapeText(shape);
    for (const OperatorInput& input : shape.inputs) {
      text += Name(input.type);
      for (const int64_t stride : input.strides) text += ' ' + std::to_string(stride);
    }
    const uint64_t key = std::hash<std::string>()(text);
    auto number = trace_.operators.Find(key);
    if (!number) number = trace_.operators.Add(key, std::move(shape));
    timeline::OperatorCall call;
    call.begin_ns = begin * 1000;
    call.duration_ns = static_cast<uint32_t>(duration * 1000);
    call.shape = *number;
    call.thread = thread_;
    trace_.operators.calls.push_back(call);
    return *this;
  }
  // What is kept of operators besides their shapes: when the outermost ones ran.
  MadeTrace& Span(const char* name, int64_t begin, int64_t duration,
                  timeline::SpanKind kind = timeline::SpanKind::kOp) {
    trace_.spans.push_back({begin * 1000, (begin + duration) * 1000, trace_.names.Find(name), thread_, kind});
    return *this;
  }
  MadeTrace& Kernel(const char* name, int64_t launch, int64_t begin, int64_t duration, uint16_t blocks = 0) {
    timeline::HostCall call;
    call.begin_ns = launch * 1000;
    call.end_ns = launch * 1000 + 500;
    call.correlation = static_cast<uint32_t>(trace_.ops.size() + 1);
    call.kind = timeline::CallKind::kLaunch;
    call.thread = thread_;
    trace_.calls.push_back(call);
    Orphan(name, begin, duration);
    trace_.ops.back().correlation = call.correlation;
    trace_.ops.back().blocks = blocks;
    return *this;
  }
  MadeTrace& Orphan(const char* name, int64_t begin, int64_t duration) {
    timeline::DeviceOp op;
    op.begin_ns = begin * 1000;
    op.end_ns = (begin + duration) * 1000;
    op.name = trace_.names.Find(name);
    op.lane = timeline::ClassifyKernel(name);
    op.kernel = true;
    trace_.ops.push_back(op);
    return *this;
  }
  const timeline::DeviceTrace& Finish() {
    trace_.Finish();
    return trace_;
  }

 private:
  timeline::DeviceTrace trace_;
  uint16_t thread_ = 0;
};

}  // namespace fullbore::roofline
