#include "explain/ingest/kineto/recomputed.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace fullbore::ingest::kineto {
namespace {

// Made of other operators ("CompositeImplicitAutograd" in PyTorch's native_functions.yaml): no formula of a derivative
// calls them.
bool IsOfModelsOnly(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames = {"aten::linear",
                                                       "aten::conv1d",
                                                       "aten::conv2d",
                                                       "aten::conv3d",
                                                       "aten::layer_norm",
                                                       "aten::rms_norm",
                                                       "aten::batch_norm",
                                                       "aten::group_norm",
                                                       "aten::dropout",
                                                       "aten::embedding",
                                                       "aten::cross_entropy_loss",
                                                       "aten::scaled_dot_product_attention"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Whether an operator took a number by which its gradient will find it; nodes of the backward pass have that of theirs,
// and the thread that computed it forward, which is never 0.
bool IsToBeDifferentiated(std::string_view args) {
  if (args.find("\"Sequence number\"") == std::string_view::npos) return false;
  Members members(args);
  while (members.Next()) {
    if (members.key() == "Fwd thread id") return members.value() == "0";
  }
  return true;
}

}  // namespace

// In the backward pass only what is run again is to be differentiated, and second derivatives. These never call operators
// that are made of others, as models do.
void Recomputed::Take(const RawEvent& event, int64_t begin_ns, int64_t end_ns,
                      const timeline::HostSpan& node) {
  if (!IsToBeDifferentiated(event.args)) return;
  if (node_begin_ns_ != node.begin_ns || again_.thread != node.thread) {
    Finish();
    again_ = {begin_ns, end_ns, node.thread};
    node_begin_ns_ = node.begin_ns;
  }
  again_.begin_ns = std::min(again_.begin_ns, begin_ns);
  again_.end_ns = std::max(again_.end_ns, end_ns);
  is_forward_ = is_forward_ || IsOfModelsOnly(event.name);
}

void Recomputed::Finish() {
  if (is_forward_) trace_->recomputations.push_back(again_);
  node_begin_ns_ = INT64_MIN;
  is_forward_ = false;
}

}  // namespace fullbore::ingest::kineto
