#include "timeline/operator_kinds.h"

#include <string>
#include <unordered_map>

#include "base/text.h"

namespace fullbore::timeline {
namespace {

struct Known {
  std::string_view name;
  OperatorKind kind;
};

// Names of ATen (native_functions.yaml of PyTorch 1.8 to 2.9) without the namespace and the underscore of
// in-place forms.
constexpr Known kAten[] = {
    {"mm", OperatorKind::kMatrix},
    {"addmm", OperatorKind::kMatrix},
    {"_addmm_activation", OperatorKind::kMatrix},
    {"bmm", OperatorKind::kMatrix},
    {"baddbmm", OperatorKind::kMatrix},
    {"addbmm", OperatorKind::kMatrix},
    {"mv", OperatorKind::kMatrix},
    {"addmv", OperatorKind::kMatrix},
    {"dot", OperatorKind::kMatrix},
    {"matmul", OperatorKind::kMatrix},
    {"linear", OperatorKind::kMatrix},
    {"_scaled_mm", OperatorKind::kMatrix},
    {"_int_mm", OperatorKind::kMatrix},
    {"convolution", OperatorKind::kConvolution},
    {"cudnn_convolution_relu", OperatorKind::kConvolution},
    {"cudnn_convolution_add_relu", OperatorKind::kConvolution},
    {"convolution_backward", OperatorKind::kConvolutionBackward},
    {"cudnn_convolution_backward", OperatorKind::kConvolutionBackward},
    {"cudnn_convolution_backward_input", OperatorKind::kConvolutionPart},
    {"cudnn_convolution_backward_weight", OperatorKind::kConvolutionPart},
    {"miopen_convolution_backward", OperatorKind::kConvolutionBackward},
    {"miopen_convolution_backward_input", OperatorKind::kConvolutionPart},
    {"miopen_convolution_backward_weight", OperatorKind::kConvolutionPart},
    {"_scaled_dot_product_flash_attention", OperatorKind::kAttention},
    {"_scaled_dot_product_efficient_attention", OperatorKind::kAttention},
    {"_scaled_dot_product_cudnn_attention", OperatorKind::kAttention},
    {"_scaled_dot_product_fused_attention_overrideable", OperatorKind::kAttention},
    {"_scaled_dot_product_flash_attention_backward", OperatorKind::kAttentionBackward},
    {"_scaled_dot_product_efficient_attention_backward", OperatorKind::kAttentionBackward},
    {"_scaled_dot_product_cudnn_attention_backward", OperatorKind::kAttentionBackward},
    {"_scaled_dot_product_attention_math", OperatorKind::kAttentionMath},
    {"native_layer_norm", OperatorKind::kNormalisation},
    {"native_group_norm", OperatorKind::kNormalisation},
    {"native_batch_norm", OperatorKind::kNormalisation},
    {"_native_batch_norm_legit", OperatorKind::kNormalisation},
    {"_batch_norm_with_update", OperatorKind::kNormalisation},
    {"cudnn_batch_norm", OperatorKind::kNormalisation},
    {"miopen_batch_norm", OperatorKind::kNormalisation},
    {"_fused_rms_norm", OperatorKind::kNormalisation},
    {"native_layer_norm_backward", OperatorKind::kNormalisationBackward},
    {"native_group_norm_backward", OperatorKind::kNormalisationBackward},
    {"native_batch_norm_backward", OperatorKind::kNormalisationBackward},
    {"batch_norm_backward", OperatorKind::kNormalisationBackward},
    {"cudnn_batch_norm_backward", OperatorKind::kNormalisationBackward},
    {"miopen_batch_norm_backward", OperatorKind::kNormalisationBackward},
    {"_fused_rms_norm_backward", OperatorKind::kNormalisationBackward},
    {"rms_norm", OperatorKind::kNormalisationMath},
    {"_softmax", OperatorKind::kSoftmax},
    {"_log_softmax", OperatorKind::kSoftmax},
    {"_masked_softmax", OperatorKind::kSoftmax},
    {"_softmax_backward_data", OperatorKind::kSoftmaxBackward},
    {"_log_softmax_backward_data", OperatorKind::kSoftmaxBackward},
    {"sum", OperatorKind::kReduction},
    {"mean", OperatorKind::kReduction},
    {"var", OperatorKind::kReduction},
    {"std", OperatorKind::kReduction},
    {"var_mean", OperatorKind::kReduction},
    {"amax", OperatorKind::kReduction},
    {"amin", OperatorKind::kReduction},
    {"max", OperatorKind::kReduction},
    {"min", OperatorKind::kReduction},
    {"argmax", OperatorKind::kReduction},
    {"argmin", OperatorKind::kReduction},
    {"prod", OperatorKind::kReduction},
    {"norm", OperatorKind::kReduction},
    {"linalg_vector_norm", OperatorKind::kReduction},
    {"logsumexp", OperatorKind::kReduction},
    {"all", OperatorKind::kReduction},
    {"any", OperatorKind::kReduction},
    {"copy_", OperatorKind::kCopy},
    {"fill_", OperatorKind::kFill},
    {"zero_", OperatorKind::kFill},
    {"normal_", OperatorKind::kFill},
    {"uniform_", OperatorKind::kFill},
    {"bernoulli_", OperatorKind::kFill},
    {"random_", OperatorKind::kFill},
    {"exponential_", OperatorKind::kFill},
    {"cat", OperatorKind::kConcatenation},
    {"_cat", OperatorKind::kConcatenation},
    {"index_select", OperatorKind::kGather},
    {"embedding", OperatorKind::kGather},
    {"gather", OperatorKind::kGather},
    {"embedding_dense_backward", OperatorKind::kScatter},
    {"scatter_add_", OperatorKind::kScatter},
    {"index_add_", OperatorKind::kScatter},
    {"max_pool2d_with_indices", OperatorKind::kPool},
    {"max_pool2d_with_indices_backward", OperatorKind::kPool},
    {"avg_pool2d", OperatorKind::kPool},
    {"avg_pool2d_backward", OperatorKind::kPool},
    {"_embedding_bag", OperatorKind::kTable},
    {"_embedding_bag_dense_backward", OperatorKind::kTable},
    {"_index_put_impl_", OperatorKind::kTable},
    {"_fused_adam_", OperatorKind::kOptimizer},
    {"_fused_adamw_", OperatorKind::kOptimizer},
    {"_fused_sgd_", OperatorKind::kOptimizer},
    {"_fused_adagrad_", OperatorKind::kOptimizer},
};

// One result an element, from the elements at the same place (as TensorIterator computes them).
constexpr std::string_view kPointwise =
    "abs add sub rsub mul div divide multiply true_divide floor_divide remainder fmod pow neg exp "
    "exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan atan2 sinh cosh "
    "tanh erf erfc erfinv sigmoid logit relu relu6 gelu silu mish elu celu selu hardtanh hardswish "
    "hardsigmoid leaky_relu softplus softshrink hardshrink threshold log_sigmoid_forward clamp "
    "clamp_min clamp_max clip maximum minimum fmax fmin lerp addcmul addcdiv where masked_fill "
    "eq ne lt le gt ge logical_and logical_or logical_xor logical_not bitwise_and "
    "bitwise_or bitwise_xor bitwise_not sign sgn round floor ceil trunc frac isnan isinf isfinite "
    "nan_to_num square tril triu native_dropout _fused_dropout _prelu_kernel "
    "binary_cross_entropy mse_loss smooth_l1_loss huber_loss roll flip threshold_backward "
    "sigmoid_backward tanh_backward gelu_backward silu_backward mish_backward elu_backward "
    "hardtanh_backward hardswish_backward hardsigmoid_backward leaky_relu_backward softplus_backward "
    "log_sigmoid_backward native_dropout_backward _masked_scale mse_loss_backward "
    "smooth_l1_loss_backward binary_cross_entropy_backward";

using Table = std::unordered_map<std::string_view, OperatorKind>;

const Table& AtenTable() {
  static const Table table = [] {
    Table all;
    for (const Known& known : kAten) all.emplace(known.name, known.kind);
    for (const std::string_view name : Split(kPointwise, ' ')) all.emplace(name, OperatorKind::kElementwise);
    return all;
  }();
  return table;
}

OperatorKind KindInAten(std::string_view name) {
  const Table& table = AtenTable();
  if (const auto found = table.find(name); found != table.end()) return found->second;
  if (name.starts_with("_foreach_")) return OperatorKind::kOptimizer;
  if (!IsInPlace(name)) return OperatorKind::kNone;
  const auto found = table.find(name.substr(0, name.size() - 1));
  return found == table.end() ? OperatorKind::kNone : found->second;
}

bool Has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

OperatorKind KindOfOperator(std::string_view name) {
  if (name.starts_with("aten::")) return KindInAten(name.substr(6));
  if (name.starts_with("triton_poi_") || name.starts_with("triton_red_") || name.starts_with("triton_per_"))
    return OperatorKind::kTriton;
  // Libraries that register operators of their own: flash-attn, vLLM and its relatives.
  if (name.starts_with("flash_attn::_flash_attn_forward")) return OperatorKind::kAttention;
  if (name.starts_with("flash_attn::_flash_attn_backward")) return OperatorKind::kAttentionBackward;
  const size_t space = name.find("::");
  if (space == std::string_view::npos) return OperatorKind::kNone;
  const std::string_view own = name.substr(space + 2);
  if (Has(own, "fused_moe") || Has(own, "fused_experts")) return OperatorKind::kMoe;
  if (own == "rms_norm" || own == "fused_add_rms_norm") return OperatorKind::kNormalisation;
  return OperatorKind::kNone;
}

bool ConcretesMatter(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kConvolution:
    case OperatorKind::kConvolutionBackward:
    case OperatorKind::kAttention:
    case OperatorKind::kAttentionBackward:
    case OperatorKind::kSoftmax:
    case OperatorKind::kReduction:
    case OperatorKind::kGather:
    case OperatorKind::kScatter:
    case OperatorKind::kPool:
    case OperatorKind::kTable:
      return true;
    default:
      return false;
  }
}

}  // namespace fullbore::timeline
