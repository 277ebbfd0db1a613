#include "explain/roofline/host_work.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "explain/roofline/host_operators.h"
#include "explain/roofline/tensors.h"

namespace fullbore::roofline {

namespace {

using record::HostWork;
using timeline::DeviceTrace;
using timeline::HostSpan;
using timeline::OperatorCall;
using timeline::OperatorKind;
using timeline::SpanKind;

// Below it an operator's time is that of being called, whatever it computes.
constexpr int64_t kElementsThatCount = 1024;
// Fewer parts of one tensor in a step are not a loop over it.
constexpr int64_t kLoop = 8;
constexpr size_t kMaxNamed = 16;

struct Timed {
  const OperatorCall* call;
  const OperatorShape* shape;
  std::string_view name;
  int64_t self_ns;  // without the operators inside
};

// By begin, the outer ones first, as the log has them.
std::vector<Timed> CallsOf(const DeviceTrace& trace, const std::vector<timeline::StepBounds>& steps) {
  std::vector<Timed> calls;
  std::vector<size_t> open;
  for (const OperatorCall& call : trace.operators.calls) {
    if (call.thread != trace.main_thread() || !IsInside(steps, call.begin_ns)) continue;
    while (!open.empty() && calls[open.back()].call->end_ns() <= call.begin_ns) open.pop_back();
    if (!open.empty()) calls[open.back()].self_ns -= call.duration_ns;
    open.push_back(calls.size());
    const OperatorShape& shape = trace.operators.shapes[call.shape];
    calls.push_back({&call, &shape, trace.names[shape.name], call.duration_ns});
  }
  for (Timed& one : calls) one.self_ns = std::max<int64_t>(0, one.self_ns);
  return calls;
}

bool IsTensor(const OperatorInput& input, int64_t rows, int64_t columns) {
  return input.dims.size() == 2 && input.dims[0] == rows && input.dims[1] == columns;
}

// ---- Tables of which few rows are used ----

struct Scatter {
  int64_t rows = 0, columns = 0;
  double used = 0;
};

// Where rows are added to a gradient of the whole table.
std::optional<Scatter> ScatterOf(const Timed& one) {
  const OperatorShape& shape = *one.shape;
  const auto of_lookup = [&](size_t rows_at) -> std::optional<Scatter> {
    const OperatorInput &gradient = Input(shape, 0), &indices = Input(shape, 1);
    const auto rows = ParseInt(Input(shape, rows_at).concrete);
    if (!rows || *rows <= 0 || !gradient.tensor() || !indices.tensor()) return std::nullopt;
    return Scatter{*rows, gradient.dims.back(), Count(indices.dims)};
  };
  const auto of_write = [&](size_t values_at) -> std::optional<Scatter> {
    const OperatorInput &table = Input(shape, 0), &values = Input(shape, values_at);
    if (table.dims.size() != 2 || table.dims[1] <= 0 || !values.tensor()) return std::nullopt;
    return Scatter{table.dims[0], table.dims[1], Count(values.dims) / static_cast<double>(table.dims[1])};
  };
  if (one.name == "aten::embedding_dense_backward") return of_lookup(2);
  if (one.name == "aten::_embedding_bag_dense_backward") return of_lookup(5);
  if (one.name == "aten::scatter_add_" || one.name == "aten::index_add_") return of_write(3);
  if (one.name == "aten::_index_put_impl_") return of_write(2);
  return std::nullopt;
}

// Which part of a call goes over the whole table: of lists of tensors, as much as the table is of their elements.
double PartOn(const HostWork::Table& table, const Timed& one) {
  // Looking up reads the rows that are wanted, no others.
  if (one.shape->kind == OperatorKind::kGather || one.name == "aten::_embedding_bag") return 0;
  if (const auto scatter = ScatterOf(one))
    return scatter->rows == table.rows && scatter->columns == table.columns ? 1 : 0;
  const double elements = static_cast<double>(table.rows) * static_cast<double>(table.columns);
  for (const OperatorInput& input : one.shape->inputs) {
    if (IsTensor(input, table.rows, table.columns)) return 1;
    if (static_cast<double>(input.list_elements) >= elements)
      return elements / static_cast<double>(input.list_elements);
  }
  return 0;
}

// The weights of a layer that multiplies: all rows have a gradient then, even if they are looked up besides.
bool IsMultiplied(const HostWork::Table& table, const Timed& one) {
  if (!timeline::IsMatrixWork(one.shape->kind)) return false;
  return std::ranges::any_of(one.shape->inputs, [&](const OperatorInput& input) {
    return IsTensor(input, table.rows, table.columns) || IsTensor(input, table.columns, table.rows);
  });
}

std::vector<std::pair<int64_t, int64_t>> OptimizerSteps(const DeviceTrace& trace) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (const HostSpan& span : trace.spans) {
    if (span.kind == SpanKind::kOptimizer && span.thread == trace.main_thread())
      spans.emplace_back(span.begin_ns, span.end_ns);
  }
  return spans;
}

std::vector<HostWork::Table> TablesOf(const DeviceTrace& trace, const std::vector<Timed>& calls,
                                      size_t steps) {
  std::map<std::pair<int64_t, int64_t>, double> used;
  for (const Timed& one : calls) {
    const auto scatter = ScatterOf(one);
    if (scatter && scatter->rows * scatter->columns >= kElementsThatCount && used.size() < kMaxNamed)
      used[{scatter->rows, scatter->columns}] += scatter->used;
  }
  const auto optimizer = OptimizerSteps(trace);
  const auto is_update = [&](const Timed& one) {
    return std::ranges::any_of(optimizer, [&](const auto& span) {
      return span.first <= one.call->begin_ns && one.call->begin_ns < span.second;
    });
  };
  std::vector<HostWork::Table> tables;
  for (const auto& [size, rows] : used) {
    HostWork::Table table{size.first, size.second, rows / static_cast<double>(steps), 0};
    double ns = 0;
    bool is_updated = false, is_multiplied = false;
    for (const Timed& one : calls) {
      is_multiplied = is_multiplied || IsMultiplied(table, one);
      const double part = PartOn(table, one);
      if (part <= 0) continue;
      ns += part * static_cast<double>(one.self_ns);
      is_updated = is_updated || is_update(one);
    }
    table.ns = static_cast<int64_t>(ns);
    if (is_updated && !is_multiplied) tables.push_back(table);
  }
  std::ranges::stable_sort(tables, std::greater(), &HostWork::Table::ns);
  return tables;
}

// ---- Parts of a tensor, one by one ----

bool TakesPart(std::string_view node) {
  constexpr std::array kNodes = {"SelectBackward", "SliceBackward", "NarrowBackward",
                                 "torch::autograd::CopySlices", "CopySlices"};
  return std::ranges::any_of(kNodes, [&](std::string_view known) { return node.starts_with(known); });
}

// Of the largest tensor that is filled, copied or added within a span.
int64_t WholeWithin(const HostSpan& span, const std::vector<Timed>& calls) {
  const auto begin = [](const Timed& one) { return one.call->begin_ns; };
  int64_t whole = 0;
  for (auto at = std::ranges::lower_bound(calls, span.begin_ns, {}, begin);
       at != calls.end() && at->call->begin_ns < span.end_ns; ++at)
    if (Input(*at->shape, 0).tensor()) whole = std::max(whole, timeline::Elements(Input(*at->shape, 0).dims));
  return whole;
}

std::vector<HostWork::Parts> PartsOf(const DeviceTrace& trace, const std::vector<timeline::StepBounds>& steps,
                                     const std::vector<Timed>& calls) {
  std::map<std::pair<std::string_view, int64_t>, HostWork::Parts> found;
  for (const HostSpan& span : trace.spans) {
    if (span.kind != SpanKind::kBackward || span.thread != trace.main_thread()) continue;
    const std::string_view node = ShortName(trace.names[span.name]);
    if (!TakesPart(node) || !IsInside(steps, span.begin_ns)) continue;
    const int64_t whole = WholeWithin(span, calls);
    HostWork::Parts& parts = found[{node, whole}];
    parts.node = node;
    parts.elements = whole;
    ++parts.count;
    parts.ns += span.end_ns - span.begin_ns;
  }
  std::vector<HostWork::Parts> loops;
  for (const auto& [key, parts] : found) {
    if (parts.count >= kLoop * static_cast<int64_t>(steps.size()) && parts.elements >= kElementsThatCount)
      loops.push_back(parts);
  }
  std::ranges::stable_sort(loops, std::greater(), &HostWork::Parts::ns);
  if (loops.size() > kMaxNamed) loops.resize(kMaxNamed);
  return loops;
}

// ---- Precision and layout ----

bool IsDouble(const Timed& one) {
  return std::ranges::any_of(one.shape->inputs, [](const OperatorInput& input) {
    return input.tensor() && input.type == ElementType::kFloat64 &&
           timeline::Elements(input.dims) >= kElementsThatCount;
  });
}

// The dimensions from the outermost in memory to the innermost; those of a single element lie anywhere. Nothing where
// it is not known, or an element stands for several.
std::optional<std::vector<size_t>> OrderOf(const OperatorInput& input) {
  if (input.strides.size() != input.dims.size()) return std::nullopt;
  std::vector<size_t> order;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    if (input.dims[i] > 1 && input.strides[i] == 0) return std::nullopt;
    if (input.dims[i] > 1) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return input.strides[i]; });
  return order;
}

bool IsRelaid(const Timed& one) {
  if (one.name != "aten::copy_") return false;
  const OperatorInput &to = Input(*one.shape, 0), &from = Input(*one.shape, 1);
  if (!to.tensor() || to.dims != from.dims || to.type != from.type) return false;
  if (timeline::Elements(to.dims) < kElementsThatCount) return false;
  const auto before = OrderOf(from), after = OrderOf(to);
  return before && after && *before != *after;
}

}  // namespace

std::optional<HostWork> HostWorkOf(const DeviceTrace& trace, const std::vector<timeline::StepBounds>& steps) {
  const std::vector<Timed> calls = CallsOf(trace, steps);
  if (calls.empty()) return std::nullopt;
  HostWork work;
  work.steps = static_cast<int64_t>(steps.size());
  for (const timeline::StepBounds& step : steps) work.stepped_ns += step.end_ns - step.begin_ns;
  work.tables = TablesOf(trace, calls, steps.size());
  work.parts = PartsOf(trace, steps, calls);
  for (const Timed& one : calls) {
    if (IsDouble(one)) work.float64_ns += one.self_ns;
    if (!IsRelaid(one)) continue;
    ++work.relaid;
    work.relaid_ns += one.self_ns;
  }
  return work;
}

}  // namespace fullbore::roofline
