// Small scenes of host and device for the tests of sections; times are microseconds.
#pragma once

#include <string>
#include <vector>

#include "explain/analyze/section.h"

namespace fullbore::analyze {

class Scene {
 public:
  Scene() {
    trace_.threads = {"main", "autograd"};
    trace_.streams = {"0/7", "0/20"};
    trace_.rank = 0;
  }

  Scene& Op(const char* name, int64_t launch, int64_t begin, int64_t end, uint16_t stream = 0,
            int64_t call_us = 5, uint16_t thread = 0) {
    timeline::HostCall call;
    call.begin_ns = launch * 1000;
    call.end_ns = (launch + call_us) * 1000;
    call.correlation = static_cast<uint32_t>(trace_.ops.size() + 1);
    call.kind = timeline::CallKind::kLaunch;
    call.name = trace_.names.Find("cudaLaunchKernel");
    call.thread = thread;
    trace_.calls.push_back(call);
    Orphan(name, begin, end, stream);
    trace_.ops.back().correlation = call.correlation;
    return *this;
  }
  Scene& Orphan(const char* name, int64_t begin, int64_t end, uint16_t stream = 0) {
    timeline::DeviceOp op;
    op.begin_ns = begin * 1000;
    op.end_ns = end * 1000;
    op.stream = stream;
    op.name = trace_.names.Find(name);
    op.lane = timeline::ClassifyKernel(name);
    op.kernel = std::string_view(name).find("Mem") != 0;
    trace_.ops.push_back(op);
    return *this;
  }
  Scene& Bytes(int64_t bytes) {  // of the last operation
    trace_.ops.back().detail = static_cast<uint32_t>(trace_.copy_bytes.size());
    trace_.copy_bytes.push_back(bytes);
    return *this;
  }
  Scene& Sync(int64_t begin, int64_t end) {
    timeline::HostCall call;
    call.begin_ns = begin * 1000;
    call.end_ns = end * 1000;
    call.kind = timeline::CallKind::kSync;
    call.name = trace_.names.Find("cudaStreamSynchronize");
    trace_.calls.push_back(call);
    return *this;
  }
  Scene& Span(const char* name, int64_t begin, int64_t end, timeline::SpanKind kind = timeline::SpanKind::kOp,
              uint16_t thread = 0) {
    trace_.spans.push_back({begin * 1000, end * 1000, trace_.names.Find(name), thread, kind});
    return *this;
  }
  // An operator whose work is known: it was called with tensors of these dimensions.
  Scene& Shaped(const char* name, int64_t begin, int64_t end,
                const std::vector<std::vector<int64_t>>& tensors,
                timeline::ElementType type = timeline::ElementType::kFloat32) {
    timeline::OperatorShape shape;
    shape.name = trace_.names.Find(name);
    shape.kind = timeline::KindOfOperator(name);
    for (const auto& dims : tensors) {
      shape.inputs.emplace_back();
      shape.inputs.back().dims = dims;
      shape.inputs.back().type = type;
    }
    timeline::OperatorCall call;
    call.begin_ns = begin * 1000;
    call.duration_ns = static_cast<uint32_t>((end - begin) * 1000);
    call.shape = trace_.operators.Add(trace_.operators.shapes.size(), std::move(shape));
    trace_.operators.calls.push_back(call);
    return *this;
  }
  Scene& Step(int64_t number, int64_t begin, int64_t end) {
    trace_.steps.push_back({begin * 1000, end * 1000, number, 0});
    return *this;
  }
  timeline::DeviceTrace& trace() { return trace_; }

  Table Make(const char* section_name) {
    trace_.Finish();
    const Section* section = SectionNamed(section_name);
    Table table{section->columns, {}, {}};
    section->append(RankTrace(trace_), &table);
    return table;
  }

 private:
  timeline::DeviceTrace trace_;
};

// A row's cells without the rank, written plainly: "7, host_wait, 1, 20000".
inline std::vector<std::string> Rows(const Table& table, std::initializer_list<const char*> columns) {
  std::vector<std::string> rows;
  for (const auto& row : table.rows) {
    std::string text;
    for (const char* wanted : columns) {
      for (size_t c = 0; c < table.columns.size(); ++c) {
        if (std::string_view(table.columns[c].name) != wanted) continue;
        if (!text.empty()) text += ", ";
        Table one{{table.columns[c]}, {{row[c]}}, {}};
        const std::string csv = ToCsv(one);
        const size_t line = csv.find('\n') + 1;
        text += csv.substr(line, csv.size() - line - 2);
      }
    }
    rows.push_back(text);
  }
  return rows;
}

}  // namespace fullbore::analyze
