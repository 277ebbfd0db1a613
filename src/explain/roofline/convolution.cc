// Convolutions, transposed ones too, and their gradients.
#include <algorithm>

#include "explain/roofline/tensors.h"

namespace fullbore::roofline {
namespace {

// Of aten::convolution and of aten::convolution_backward; the older operators' numbers were never recorded.
struct Arguments {
  size_t stride, padding, dilation, transposed, output_padding;
};
constexpr Arguments kForward = {3, 4, 5, 6, 7};
constexpr Arguments kBackward = {4, 5, 6, 7, 8};

std::vector<int64_t> Spatial(const std::vector<int64_t>& dims) { return {dims.begin() + 2, dims.end()}; }

// A list with one number stands for all dimensions.
int64_t At(const std::vector<int64_t>& list, size_t i, int64_t otherwise) {
  return list.empty() ? otherwise : list[std::min(i, list.size() - 1)];
}

std::optional<std::vector<int64_t>> ResultSize(const OperatorShape& shape, const Arguments& at,
                                               bool transposed) {
  const auto stride = NumbersIn(Input(shape, at.stride).concrete);
  const auto padding = NumbersIn(Input(shape, at.padding).concrete);
  const auto dilation = NumbersIn(Input(shape, at.dilation).concrete);
  const auto more = NumbersIn(Input(shape, at.output_padding).concrete);
  if (stride.empty() || padding.empty()) return std::nullopt;
  const std::vector<int64_t> in = Spatial(shape.inputs[0].dims), kernel = Spatial(shape.inputs[1].dims);
  std::vector<int64_t> out;
  for (size_t i = 0; i < in.size(); ++i) {
    // Doubles, because the file may hold any number.
    const auto s = static_cast<double>(At(stride, i, 1)), p = static_cast<double>(At(padding, i, 0));
    const auto reach = static_cast<double>(At(dilation, i, 1)) * static_cast<double>(kernel[i] - 1);
    const auto size = static_cast<double>(in[i]);
    if (s < 1) return std::nullopt;
    const double result =
        transposed ? (size - 1) * s - 2 * p + reach + static_cast<double>(At(more, i, 0)) + 1
                   : static_cast<double>(
                         static_cast<int64_t>(std::clamp((size + 2 * p - reach - 1) / s, -1e15, 1e15))) +
                         1;
    if (result < 1 || result > 1e12) return std::nullopt;
    out.push_back(static_cast<int64_t>(result));
  }
  return out;
}

bool Fits(const OperatorInput& input, const OperatorInput& weight) {
  return input.dims.size() >= 3 && weight.dims.size() == input.dims.size() && weight.dims[1] > 0;
}

// NHWC rather than NCHW. A single channel is both.
std::optional<bool> ChannelsLast(const OperatorInput& input) {
  if (input.strides.size() < 4 || input.dims[1] == 1) return std::nullopt;
  return input.strides[1] == 1;
}

// "[True, True, False]".
std::vector<bool> FlagsIn(std::string_view text) {
  std::vector<bool> flags;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == 'T' || text[i] == 'F') flags.push_back(text[i] == 'T');
  }
  return flags;
}

Convolution FormOf(const OperatorInput& input, const OperatorInput& weight, const std::vector<int64_t>& out,
                   bool transposed, int64_t dilation) {
  Convolution form;
  form.transposed = transposed;
  form.batch = static_cast<double>(input.dims[0]);
  form.in_channels = static_cast<double>(input.dims[1]);
  form.in_pixels = Count(Spatial(input.dims));
  form.out_pixels = Count(out);
  form.kernel_pixels = Count(Spatial(weight.dims));
  // (out, in / groups, ...), or (in, out / groups, ...) where it is transposed.
  if (transposed) {
    form.groups = 1;
    form.out_channels = static_cast<double>(weight.dims[1]);
  } else {
    form.groups = std::max(1.0, form.in_channels / static_cast<double>(weight.dims[1]));
    form.out_channels = static_cast<double>(weight.dims[0]);
  }
  form.dilation = static_cast<double>(std::max<int64_t>(1, dilation));
  form.channels_last = ChannelsLast(input);
  return form;
}

// Each weight is used once for each pixel of the smaller side.
double Flops(const Convolution& form, const OperatorInput& weight) {
  const double pixels = form.transposed ? form.in_pixels : form.out_pixels;
  return 2 * form.batch * pixels * Count(weight.dims);
}

}  // namespace

void CountConvolution(const OperatorShape& shape, const Context& context, Work* work) {
  const OperatorInput& input = Input(shape, 0);
  const OperatorInput& weight = Input(shape, 1);
  if (!Fits(input, weight)) return;
  const bool transposed = IsTrue(Input(shape, kForward.transposed).concrete);
  auto out = ResultSize(shape, kForward, transposed);
  if (!out && context.convolution_results != nullptr) {
    const auto found = context.convolution_results->find({input.dims, weight.dims});
    if (found != context.convolution_results->end()) out = found->second;
  }
  if (!out) return;
  Convolution form =
      FormOf(input, weight, *out, transposed, At(NumbersIn(Input(shape, kForward.dilation).concrete), 0, 1));
  const auto groups = NumbersIn(Input(shape, 8).concrete);
  if (transposed && !groups.empty() && groups[0] > 0) {
    form.groups = static_cast<double>(groups[0]);
    form.out_channels *= form.groups;
  }
  work->flops = Flops(form, weight);
  work->elements = form.batch * form.out_channels * form.out_pixels;
  ByteSum bytes;
  bytes.Read(input);
  bytes.Read(weight);
  bytes.Add(work->elements, input.type);
  work->bytes = bytes.sum();
  work->type = input.type;
  work->matrix = true;
  work->form = form;
}

void CountConvolutionBackward(const OperatorShape& shape, std::string_view name, const Context& context,
                              Work* work) {
  const bool newer = name == "aten::convolution_backward";
  const OperatorInput& gradient = Input(shape, newer ? 0 : 1);
  const OperatorInput& input = Input(shape, newer ? 1 : 0);
  const OperatorInput& weight = Input(shape, 2);
  if (!Fits(input, weight) || gradient.dims.size() != input.dims.size()) return;
  uint8_t wanted = context.gradients;
  if (wanted == 0) {
    const std::vector<bool> mask = FlagsIn(Input(shape, 10).concrete);
    if (!newer || mask.size() < 2 || mask[0]) wanted |= kGradInput;
    if (!newer || mask.size() < 2 || mask[1]) wanted |= kGradWeight;
  }
  const bool transposed = newer && IsTrue(Input(shape, kBackward.transposed).concrete);
  const Convolution form = FormOf(input, weight, Spatial(gradient.dims), transposed,
                                  newer ? At(NumbersIn(Input(shape, kBackward.dilation).concrete), 0, 1) : 1);
  const double each = Flops(form, weight);
  const bool of_input = (wanted & kGradInput) != 0, of_weight = (wanted & kGradWeight) != 0;
  work->flops = each * (static_cast<double>(of_input) + static_cast<double>(of_weight));
  ByteSum bytes;
  bytes.Read(gradient);
  if (of_input) bytes.Add(Count(weight.dims) + Count(input.dims), weight.type);
  if (of_weight) bytes.Add(Count(weight.dims) + Count(input.dims), weight.type);
  work->bytes = bytes.sum();
  work->type = input.type;
  work->matrix = true;
  work->elements = Count(input.dims);
  work->form = form;
}

void Learn(const OperatorShape& shape, std::string_view name, ConvolutionResults* results) {
  if (shape.kind != timeline::OperatorKind::kConvolutionBackward) return;
  const bool newer = name == "aten::convolution_backward";
  const OperatorInput& gradient = Input(shape, newer ? 0 : 1);
  const OperatorInput& input = Input(shape, newer ? 1 : 0);
  const OperatorInput& weight = Input(shape, 2);
  // A transposed one has its channels the other way round and cannot be taken for one that is not.
  if (!Fits(input, weight) || gradient.dims.size() != input.dims.size() || gradient.dims[1] != weight.dims[0])
    return;
  const std::vector<int64_t> out = Spatial(gradient.dims);
  const auto [place, added] = results->try_emplace({input.dims, weight.dims}, out);
  if (!added && place->second && *place->second != out) place->second = std::nullopt;
}

}  // namespace fullbore::roofline
