// Optimizer steps over lists of tensors: _foreach_add_, _fused_adamw_ and their relatives.
#include "explain/roofline/tensors.h"

namespace fullbore::roofline {
namespace {

struct Fused {
  std::string_view name;
  double lists;    // of parameters, gradients and states that are read
  double written;  // of them
  double flops;    // an element
};

// (parameters, gradients, exp_avgs, exp_avg_sqs, ...): gradients are read only. Adam: two moments of three
// operations each, two corrections, root, quotient, update, decay.
constexpr Fused kFused[] = {{"aten::_fused_adam_", 4, 3, 12},
                            {"aten::_fused_adamw_", 4, 3, 12},
                            {"aten::_fused_sgd_", 3, 2, 4},
                            {"aten::_fused_adagrad_", 3, 2, 5}};

}  // namespace

void CountOptimizer(const OperatorShape& shape, std::string_view name, const Context& context, Work* work) {
  const auto elements = static_cast<double>(Input(shape, 0).list_elements);
  if (elements == 0) return;
  ByteSum bytes;
  work->type = context.list_type;
  work->elements = elements;
  for (const Fused& fused : kFused) {
    if (fused.name != name) continue;
    double read = 0;  // SGD without momentum passes an empty list
    for (size_t i = 0; i < static_cast<size_t>(fused.lists); ++i) {
      if (Input(shape, i).list_elements > 0) ++read;
    }
    bytes.Add((read + std::min(fused.written, read - 1)) * elements, context.list_type);
    work->bytes = bytes.sum();
    work->flops = fused.flops * elements;
    return;
  }
  double read = 0;
  for (const OperatorInput& input : shape.inputs) read += static_cast<double>(input.list_elements);
  const bool reduces = name.starts_with("aten::_foreach_norm") || name.starts_with("aten::_foreach_max");
  const bool only_writes = name == "aten::_foreach_zero_";
  bytes.Add((only_writes ? 0 : read) + (reduces ? 0 : elements), context.list_type);
  work->bytes = bytes.sum();
  work->flops = only_writes ? 0 : elements;
}

}  // namespace fullbore::roofline
