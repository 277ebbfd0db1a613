#include "explain/roofline/rows.h"

#include <algorithm>
#include <array>

#include "explain/roofline/operators.h"
#include "explain/roofline/tie.h"

namespace fullbore::roofline {

using record::Bound;
using timeline::DeviceOp;
using timeline::kNone;
using timeline::Lane;
using timeline::NameId;

namespace {

constexpr uint32_t kOwnLanes =
    timeline::kComputeLanes | timeline::Bit(Lane::kD2d) | timeline::Bit(Lane::kMemset);

bool ConvertsLayout(std::string_view kernel) {
  for (const std::string_view mark : {"nchwToNhwc", "nhwcToNchw", "nchwAddPadding", "batched_transpose"}) {
    if (kernel.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

class Summing {
 public:
  Summing(const timeline::DeviceTrace& trace, const std::vector<timeline::StepBounds>& steps,
          const Device* device)
      : trace_(trace), steps_(steps), device_(device), tied_(Tie(trace)) {}

  Rows Run() {
    Gather();
    for (const timeline::OperatorShape& shape : trace_.operators.shapes)
      Learn(shape, trace_.names[shape.name], &convolution_results_);
    for (size_t i = 0; i < out_.rows.size(); ++i) {
      FindMainKernel(kernels_[i], &out_.rows[i]);
      if (!out_.rows[i].covered) Count(&out_.rows[i]);
    }
    return std::move(out_);
  }

 private:
  struct KernelSum {
    int64_t ns = 0;
    Lane lane = Lane::kOtherCompute;
    uint16_t blocks = 0;
  };
  using KernelSums = std::map<NameId, KernelSum>;

  bool InSteps(int64_t t_ns) const {
    return !steps_.empty() && t_ns >= steps_.front().begin_ns && t_ns < steps_.back().end_ns;
  }

  uint32_t RowOf(uint32_t call) {
    uint32_t& row = row_of_call_[call];
    if (row != kNone) return row;
    const TiedCall& tied = tied_.calls[call];
    const uint16_t shape = trace_.operators.calls[call].shape;
    const auto [place, added] =
        row_of_key_.try_emplace(std::array<uint16_t, 3>{shape, tied.gradients, tied.covered},
                                static_cast<uint32_t>(out_.rows.size()));
    if (added) {
      out_.rows.emplace_back();
      kernels_.emplace_back();
      out_.rows.back().shape = shape;
      out_.rows.back().gradients = tied.gradients;
      out_.rows.back().covered = tied.covered;
    }
    row = place->second;
    ++out_.rows[row].count;
    return row;
  }

  void Gather() {
    row_of_call_.assign(tied_.calls.size(), kNone);
    out_.row_of_op.assign(trace_.ops.size(), kNoRow);
    out_.streams.resize(trace_.streams.size() + 1);
    last_call_.assign(out_.streams.size(), kNone);
    for (uint32_t i = 0; i < trace_.ops.size(); ++i) {
      const DeviceOp& op = trace_.ops[i];
      const uint32_t call = tied_.call_of_op[i];
      const bool own = (timeline::Bit(op.lane) & kOwnLanes) != 0;
      if (!own || call == kNone) {
        EndChain(op.stream);
        if (own) Unjudged(op);
        continue;
      }
      const bool first = row_of_call_[call] == kNone;
      const uint32_t number = RowOf(call);
      out_.row_of_op[i] = number;
      Row& row = out_.rows[number];
      const int64_t ns = op.end_ns - op.begin_ns;
      ++row.kernels;
      row.device_ns += ns;
      KernelSum& kernel = kernels_[number][op.name];
      kernel.ns += ns;
      kernel.lane = op.lane;
      kernel.blocks = op.blocks;
      if (InSteps(op.begin_ns)) {
        row.count_in_steps += first ? 1 : 0;
        row.ns_in_steps += ns;
      }
      if (tied_.calls[call].in_attention) row.in_attention_ns += ns;
      if (tied_.calls[call].in_normalisation) row.in_normalisation_ns += ns;
      AddLink(op, call, number);
    }
  }

  void EndChain(uint16_t stream) {
    auto& links = out_.streams[stream];
    if (!links.empty() && links.back().row != kNoRow) links.push_back({});
    last_call_[stream] = kNone;
  }

  void AddLink(const DeviceOp& op, uint32_t call, uint32_t row) {
    auto& links = out_.streams[op.stream];
    if (last_call_[op.stream] != call || links.empty()) links.push_back({row, op.begin_ns, op.end_ns, 0});
    last_call_[op.stream] = call;
    links.back().end_ns = std::max(links.back().end_ns, op.end_ns);
    links.back().device_ns += op.end_ns - op.begin_ns;
  }

  void Unjudged(const DeviceOp& op) {
    const int64_t ns = op.end_ns - op.begin_ns;
    out_.unjudged_ns[op.lane] += ns;
    const bool matrix = (timeline::Bit(op.lane) & kMatrixLanes) != 0;
    if (op.call == kNone) out_.unlaunched_ns += ns;
    if (!InSteps(op.begin_ns)) return;
    out_.unjudged_in_steps_ns += ns;
    if (matrix) out_.matrix_unjudged_in_steps_ns += ns;
  }

  void FindMainKernel(const KernelSums& kernels, Row* row) const {
    int64_t most = -1;
    for (const auto& [name, kernel] : kernels) {
      row->converts_layout = row->converts_layout || ConvertsLayout(trace_.names[name]);
      if (kernel.ns <= most) continue;
      most = kernel.ns;
      row->kernel = name;
      row->lane = kernel.lane;
      row->blocks = kernel.blocks;
    }
  }

  void Count(Row* row) const {
    const timeline::OperatorShape& shape = trace_.operators.shapes[row->shape];
    Context context;
    context.list_type = TypeInKernelName(trace_.names[row->kernel]);
    context.gradients = row->gradients;
    context.convolution_results = &convolution_results_;
    row->work = WorkOf(shape, trace_.names[shape.name], context);
    if (device_ != nullptr) Limit(row);
  }

  // The longer of what the arithmetic and what the bytes take.
  void Limit(Row* row) const {
    const Work& work = row->work;
    if (!work.bytes) return;
    const double memory_ns = *work.bytes / device_->bytes_per_s() * 1e9;
    double compute_ns = 0;
    if (work.matrix) {
      const auto peak = MatrixPeak(*device_, work.type, row->lane == Lane::kMatmulTensor);
      if (!peak || !work.flops) return;
      compute_ns = *work.flops / *peak * 1e9;
    } else if (work.flops && device_->tflops.fp32 > 0) {
      compute_ns = *work.flops / (device_->tflops.fp32 * 1e12) * 1e9;
    }
    row->attainable_ns = std::max(memory_ns, compute_ns);
    row->bound = compute_ns >= memory_ns ? Bound::kCompute : Bound::kMemory;
  }

  const timeline::DeviceTrace& trace_;
  const std::vector<timeline::StepBounds>& steps_;
  const Device* const device_;
  const Tied tied_;
  std::map<std::array<uint16_t, 3>, uint32_t> row_of_key_;
  std::vector<uint32_t> row_of_call_;
  std::vector<uint32_t> last_call_;  // by stream
  std::vector<KernelSums> kernels_;  // by row
  ConvolutionResults convolution_results_;
  Rows out_;
};

}  // namespace

Rows SumUp(const timeline::DeviceTrace& trace, const std::vector<timeline::StepBounds>& steps,
           const Device* device) {
  return Summing(trace, steps, device).Run();
}

}  // namespace fullbore::roofline
