// Fused attention: scaled_dot_product_attention in its flash, memory-efficient and cuDNN forms, and
// flash-attn's own operators.
#include <algorithm>

#include "explain/roofline/tensors.h"

namespace fullbore::roofline {
namespace {

// Which argument says that a query sees only the keys before it, and how a tensor is laid out.
struct Arguments {
  std::string_view name;
  size_t queries;  // keys and values follow
  size_t causal;
  bool heads_first;  // (batch, heads, length, size), else (batch, length, heads, size)
};

constexpr Arguments kArguments[] = {
    {"aten::_scaled_dot_product_flash_attention", 0, 4, true},
    {"aten::_scaled_dot_product_efficient_attention", 0, 6, true},
    {"aten::_scaled_dot_product_cudnn_attention", 0, 6, true},
    {"aten::_scaled_dot_product_fused_attention_overrideable", 0, 5, true},
    {"aten::_scaled_dot_product_flash_attention_backward", 1, 11, true},
    {"aten::_scaled_dot_product_efficient_attention_backward", 1, 11, true},
    {"aten::_scaled_dot_product_cudnn_attention_backward", 1, 14, true},
    {"flash_attn::_flash_attn_forward", 0, 5, false},
    {"flash_attn::_flash_attn_backward", 1, 11, false},
};

// Of queries and keys that see each other. PyTorch's is_causal lets query i see the keys up to i.
double Pairs(const Attention& form) {
  if (!form.causal) return form.queries * form.keys;
  const double seen = std::min(form.queries, form.keys);
  return seen * (seen + 1) / 2 + (form.queries - seen) * form.keys;
}

}  // namespace

void CountAttention(const OperatorShape& shape, std::string_view name, Work* work) {
  const auto* known = std::find_if(std::begin(kArguments), std::end(kArguments),
                                   [&](const Arguments& each) { return each.name == name; });
  if (known == std::end(kArguments)) return;
  const OperatorInput& queries = Input(shape, known->queries);
  const OperatorInput& keys = Input(shape, known->queries + 1);
  const OperatorInput& values = Input(shape, known->queries + 2);
  if (queries.dims.size() != 4 || keys.dims.size() != 4 || values.dims.size() != 4) return;
  const size_t heads = known->heads_first ? 1 : 2, length = known->heads_first ? 2 : 1;
  Attention form;
  form.batch = static_cast<double>(queries.dims[0]);
  form.heads = static_cast<double>(queries.dims[heads]);
  form.queries = static_cast<double>(queries.dims[length]);
  form.keys = static_cast<double>(keys.dims[length]);
  form.head_size = static_cast<double>(queries.dims[3]);
  form.causal = IsTrue(Input(shape, known->causal).concrete);
  const auto value_size = static_cast<double>(values.dims[3]);
  const double forward = 2 * form.batch * form.heads * Pairs(form) * (form.head_size + value_size);
  const double results = form.batch * form.heads * form.queries * value_size;
  ByteSum bytes;
  bytes.Read(queries);
  bytes.Read(keys);
  bytes.Read(values);
  bytes.Add(results, queries.type);
  if (known->queries == 0) {
    work->flops = forward;
    bytes.Read(Input(shape, 3));  // a bias or mask; elsewhere a number
  } else {
    // Five products where the forward pass has two: the scores are computed again rather than stored
    // (FlashAttention, Dao et al. 2022).
    work->flops = 2.5 * forward;
    bytes.Read(Input(shape, 0));
    bytes.Add(Count(queries.dims), queries.type);
    bytes.Add(Count(keys.dims), keys.type);
    bytes.Add(Count(values.dims), values.type);
  }
  work->bytes = bytes.sum();
  work->type = queries.type;
  work->matrix = true;
  work->elements = results;
  work->form = form;
}

}  // namespace fullbore::roofline
