#include "explain/roofline/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "explain/roofline/chains.h"
#include "explain/roofline/matrix_units.h"
#include "explain/roofline/operators.h"
#include "explain/roofline/reasons.h"
#include "explain/roofline/rows.h"

namespace fullbore::roofline {

using record::Arithmetic;
using timeline::ElementType;
using timeline::Lane;
using timeline::OperatorKind;

namespace {

Arithmetic ArithmeticOf(const Row& row) {
  if (!row.work.matrix) return Arithmetic::kVector;
  switch (row.work.type) {
    case ElementType::kFloat32:
      return row.lane == Lane::kMatmulTensor ? Arithmetic::kTensorFloat32 : Arithmetic::kFloat32;
    case ElementType::kFloat16:
      return Arithmetic::kFloat16;
    case ElementType::kBFloat16:
      return Arithmetic::kBFloat16;
    case ElementType::kFloat8:
      return Arithmetic::kFloat8;
    default:
      return Arithmetic::kOther;
  }
}

// What the operations of the graph had to do: they are the first ones of the trace, in the same order.
void TellTasks(const Rows& sums, record::StepGraph* graph) {
  graph->tasks.resize(1 + sums.rows.size());
  for (size_t i = 0; i < sums.rows.size(); ++i) {
    const Row& row = sums.rows[i];
    graph->tasks[1 + i] = {row.work.flops.value_or(0), row.work.bytes.value_or(0), ArithmeticOf(row)};
  }
  size_t op = 0;
  for (record::StepGraph::Node& node : graph->nodes) {
    if (node.work != record::Work::kDevice) continue;
    const uint32_t row = op < sums.row_of_op.size() ? sums.row_of_op[op] : kNoRow;
    ++op;
    if (row != kNoRow && sums.rows[row].work.bytes) node.task = 1 + row;
  }
}

class Judging {
 public:
  Judging(const timeline::DeviceTrace& trace, const std::vector<timeline::StepBounds>& steps,
          const Device* device)
      : trace_(trace),
        steps_(steps),
        device_(device),
        no_matrix_units_(!trace.devices.empty() &&
                         UnitsOfDevice(trace.devices.front()) == record::MatrixUnits::kNone),
        sums_(SumUp(trace, steps, device)),
        rows_(sums_.rows) {}

  record::Roofline Run() {
    TakeDevice();
    FindSurroundings();
    for (uint32_t i = 0; i < rows_.size(); ++i) Report(i);
    SumClasses();
    SumSteps();
    Sort();
    Note();
    return std::move(out_);
  }

  const Rows& sums() const { return sums_; }

 private:
  const timeline::OperatorShape& Shape(const Row& row) const { return trace_.operators.shapes[row.shape]; }
  std::string_view OperatorName(const Row& row) const { return trace_.names[Shape(row).name]; }

  void TakeDevice() {
    if (device_ == nullptr) return;
    out_.device = device_->name;
    out_.device_source = device_->source;
    out_.peak_16bit_flops = std::max(device_->tflops.fp16, device_->tflops.bf16) * 1e12;
    out_.bytes_per_s = device_->bytes_per_s();
  }

  int64_t Multiprocessors() const {
    if (device_ != nullptr) return device_->multiprocessors;
    return trace_.multiprocessors.empty() ? 0 : trace_.multiprocessors.front();
  }

  void FindSurroundings() {
    std::vector<std::string> shapes;
    for (const Row& row : rows_) shapes.push_back(ShapeText(Shape(row)));
    std::vector<ChainRow> chain_rows;
    for (size_t i = 0; i < rows_.size(); ++i)
      chain_rows.push_back({OperatorName(rows_[i]), Shape(rows_[i]).kind, rows_[i].work, shapes[i]});
    Chains chains =
        FindChains(chain_rows, sums_.streams,
                   device_ == nullptr ? std::nullopt : std::optional<double>(device_->bytes_per_s()));
    around_ = std::move(chains.rows);
    out_.chains = std::move(chains.found);
  }

  void Report(uint32_t number) {
    const Row& row = rows_[number];
    record::RooflineOperator one;
    one.name = OperatorName(row);
    one.shape = ShapeText(Shape(row));
    if (row.gradients == kGradInput) one.shape += " (gradient of the input)";
    if (row.gradients == kGradWeight) one.shape += " (gradient of the weight)";
    // Of a concatenation only the size of the elements is known.
    if (row.work.type != timeline::ElementType::kUnknown && Shape(row).kind != OperatorKind::kConcatenation)
      one.type = timeline::Name(row.work.type);
    one.kind = Name(Shape(row).kind);
    one.kernel = trace_.names[row.kernel];
    one.count = row.count;
    one.kernels = row.kernels;
    one.device_ns = row.device_ns;
    one.flops = row.work.flops;
    one.bytes = row.work.bytes;
    one.bound = row.bound;
    if (row.attainable_ns) one.attainable_ns = *row.attainable_ns * static_cast<double>(row.count);
    one.why = ReasonsFor(FactsOf(row, around_[number]));
    out_.operators.push_back(std::move(one));
  }

  Facts FactsOf(const Row& row, const Surroundings& around) const {
    const auto mostly = [&](int64_t ns) { return 2 * ns > row.device_ns; };
    Facts facts;
    facts.kind = Shape(row).kind;
    facts.work = row.work;
    facts.device_ns = static_cast<double>(row.device_ns) / static_cast<double>(row.count);
    facts.attainable_ns = row.attainable_ns;
    facts.bound = row.bound;
    facts.kernel = trace_.names[row.kernel];
    facts.lane = row.lane;
    facts.blocks = row.blocks;
    facts.multiprocessors = Multiprocessors();
    facts.device = device_;
    facts.no_matrix_units = no_matrix_units_;
    facts.converts_layout = row.converts_layout;
    facts.in_attention = mostly(around.attention_ns + row.in_attention_ns);
    facts.in_normalisation = mostly(around.normalisation_ns + row.in_normalisation_ns);
    facts.among_small = mostly(around.small_ns);
    facts.chain = mostly(around.chain_ns) ? around.chain_length : 0;
    return facts;
  }

  void SumClasses() {
    std::map<Lane, record::RooflineClass> classes;
    for (const auto& [lane, ns] : sums_.unjudged_ns) classes[lane].device_ns = ns;
    for (const Row& row : rows_) {
      record::RooflineClass& sum = classes[row.lane];
      sum.device_ns += row.device_ns;
      if (!row.work.bytes) continue;
      const auto count = static_cast<double>(row.count);
      sum.judged_ns += row.device_ns;
      sum.flops += row.work.flops.value_or(0) * count;
      sum.bytes += *row.work.bytes * count;
      if (row.attainable_ns) sum.attainable_ns = sum.attainable_ns.value_or(0) + *row.attainable_ns * count;
    }
    for (auto& [lane, sum] : classes) {
      sum.kernel_class = record::Name(lane);
      out_.classes.push_back(std::move(sum));
    }
  }

  void SumSteps() {
    if (steps_.empty()) return;
    record::RooflineSteps sum;
    sum.steps = static_cast<int64_t>(steps_.size());
    sum.wall_ns = steps_.back().end_ns - steps_.front().begin_ns;
    sum.device_ns = sums_.unjudged_in_steps_ns;
    sum.matrix_unknown_ns = sums_.matrix_unjudged_in_steps_ns;
    double floor_ns = static_cast<double>(sums_.unjudged_in_steps_ns);
    double at_peaks_ns = 0;
    for (const Row& row : rows_) {
      const auto ns = static_cast<double>(row.ns_in_steps), count = static_cast<double>(row.count_in_steps);
      sum.device_ns += row.ns_in_steps;
      floor_ns += row.attainable_ns ? std::min(ns, *row.attainable_ns * count) : ns;
      const bool matrix_lane = (timeline::Bit(row.lane) & kMatrixLanes) != 0;
      if (!row.work.bytes) {
        if (matrix_lane) sum.matrix_unknown_ns += row.ns_in_steps;
        continue;
      }
      sum.judged_ns += row.ns_in_steps;
      if (!row.work.matrix || !row.work.flops) continue;
      sum.matrix_flops += *row.work.flops * count;
      if (device_ == nullptr) continue;
      const auto peak = MatrixPeak(*device_, row.work.type, row.lane == Lane::kMatmulTensor);
      if (peak) at_peaks_ns += *row.work.flops * count / *peak * 1e9;
    }
    if (device_ != nullptr && sum.judged_ns > 0) sum.floor_ns = floor_ns;
    if (device_ != nullptr && sum.matrix_flops > 0 && sum.wall_ns > 0) {
      const auto wall = static_cast<double>(sum.wall_ns);
      sum.mfu = sum.matrix_flops / (out_.peak_16bit_flops * wall / 1e9);
      sum.mfu_of_types = at_peaks_ns / wall;
    }
    out_.steps = sum;
  }

  void Sort() {
    const auto key = [this](const record::RooflineOperator& one) {
      return device_ != nullptr && one.attainable_ns ? one.AboveNs()
             : device_ != nullptr                    ? 0.0
                                                     : static_cast<double>(one.device_ns);
    };
    std::stable_sort(out_.operators.begin(), out_.operators.end(), [&](const auto& a, const auto& b) {
      return key(a) != key(b) ? key(a) > key(b) : a.device_ns > b.device_ns;
    });
    std::stable_sort(out_.classes.begin(), out_.classes.end(),
                     [](const auto& a, const auto& b) { return a.device_ns > b.device_ns; });
  }

  void Note() {
    if (trace_.operators.calls.empty())
      out_.notes.push_back(
          "the trace has no shapes: record it with torch.profiler.profile(record_shapes=True)");
    if (device_ == nullptr) {
      const bool named = !trace_.devices.empty();
      out_.notes.push_back(
          named ? fmt::format(
                      "'{}'{} is not in the table of devices: what was reached is known, not what is "
                      "attainable",
                      trace_.devices.front(),
                      Multiprocessors() > 0 ? fmt::format(" with {} multiprocessors", Multiprocessors()) : "")
                : "the trace does not name its device: what was reached is known, not what is attainable");
    }
    if (sums_.unlaunched_ns > 0)
      out_.notes.push_back(fmt::format("kernels of {} are not judged: their launches are not in the trace",
                                       FormatDuration(sums_.unlaunched_ns)));
    if (out_.steps && out_.steps->matrix_flops > 0 && out_.steps->matrix_unknown_ns > 0)
      out_.notes.push_back(
          fmt::format("the FLOPs are a lower bound: those of {} of matrix kernels are not known",
                      FormatDuration(out_.steps->matrix_unknown_ns)));
  }

  const timeline::DeviceTrace& trace_;
  const std::vector<timeline::StepBounds>& steps_;
  const Device* const device_;
  const bool no_matrix_units_;  // of the device, whether or not it is in the table
  const Rows sums_;
  const std::vector<Row>& rows_;  // of sums_
  std::vector<Surroundings> around_;
  record::Roofline out_;
};

}  // namespace

const Device* DeviceOf(const timeline::DeviceTrace& trace) {
  const auto main = std::max_element(trace.device_ops.begin(), trace.device_ops.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (main == trace.device_ops.end() || main->first < 0) return nullptr;
  auto number = static_cast<size_t>(main->first);
  if (number >= trace.devices.size()) {  // only the visible ones are listed: one of several, or all alike
    const auto other = [&](const std::string& name) { return name != trace.devices.front(); };
    if (trace.devices.empty() || std::any_of(trace.devices.begin(), trace.devices.end(), other))
      return nullptr;
    number = 0;
  }
  std::optional<int64_t> multiprocessors;
  if (number < trace.multiprocessors.size() && trace.multiprocessors[number] > 0)
    multiprocessors = trace.multiprocessors[number];
  return DeviceNamed(trace.devices[number], multiprocessors);
}

record::Roofline Judge(const timeline::DeviceTrace& trace, const std::vector<timeline::StepBounds>& steps,
                       const Device* device) {
  return Judging(trace, steps, device).Run();
}

std::optional<record::Roofline> RooflineOf(const timeline::DeviceTrace& trace,
                                           const std::vector<timeline::StepBounds>& steps,
                                           record::StepGraph* graph) {
  if (trace.operators.calls.empty() || !trace.has_device_activity()) return std::nullopt;
  Judging judging(trace, steps, DeviceOf(trace));
  if (graph != nullptr) TellTasks(judging.sums(), graph);
  return judging.Run();
}

}  // namespace fullbore::roofline
