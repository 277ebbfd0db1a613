#include "explain/roofline/reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace fullbore::roofline {

using record::Bound;
using record::RooflineReason;
using record::RooflineWhy;
using timeline::ElementType;
using timeline::OperatorKind;

namespace {

// Most libraries' tiles; used where the grid is not recorded.
constexpr double kTile = 128;
// Matrix units take rows of 16 bytes: 8 elements of 16 bits (NVIDIA, "Matrix Multiplication Background User's
// Guide").
constexpr double kAlignedBytes = 16;
// From the begin of a kernel to its first result and from its last to the end: the shortest kernels in the
// shared traces take 1.5 us on an H100 and 4.4 us on an MI300X.
constexpr double kKernelNs = 3000;
// A product with a tenth of that to do is too small whatever its shape.
constexpr double kTinyMatrixNs = 300;
// The fewest multiprocessors of a device in the table (T4): fewer blocks are too few anywhere.
constexpr int64_t kMinMultiprocessors = 40;
// A quarter of them without work is worth a word.
constexpr double kBusyPart = 0.75;
// Channels that fill a row of a matrix unit at 16 bits.
constexpr double kChannels = 8;

class Reasons {
 public:
  explicit Reasons(const Facts& facts) : facts_(facts) {
    if (facts.attainable_ns && facts.device_ns > 0) reached_ = *facts.attainable_ns / facts.device_ns;
    far_ = !reached_ || *reached_ < kFar;
  }

  std::vector<RooflineWhy> All() {
    Surroundings();
    if (!facts_.work.bytes) return std::move(why_);
    const bool tiny = far_ && facts_.attainable_ns && *facts_.attainable_ns < kKernelNs;
    const bool only_tiny = tiny && (!facts_.work.matrix || *facts_.attainable_ns < kTinyMatrixNs);
    if (far_ && !only_tiny) {
      if (const auto* product = std::get_if<Product>(&facts_.work.form)) OfProduct(*product);
      if (const auto* form = std::get_if<Convolution>(&facts_.work.form)) OfConvolution(*form);
      if (const auto* form = std::get_if<Attention>(&facts_.work.form)) OfAttention(*form);
      if (!facts_.work.matrix) OfMemory();
      Blocks();
    }
    if (tiny && facts_.chain == 0 && !facts_.among_small) SayTiny();
    if (facts_.work.matrix && !only_tiny && !too_few_channels_) TensorCores();
    return std::move(why_);
  }

 private:
  void Say(RooflineReason reason, std::string text) { why_.push_back({reason, std::move(text)}); }
  const char* Multiprocessors() const {
    return facts_.device != nullptr && facts_.device->amd() ? "compute units" : "multiprocessors";
  }
  static std::string Count(double number) { return FormatCount(number); }

  // These hold however well each kernel does its part.
  void Surroundings() {
    if (facts_.in_attention)
      Say(RooflineReason::kAttentionUnfused,
          "part of attention made of products and a softmax: the scores go through memory between them");
    if (facts_.in_normalisation)
      Say(RooflineReason::kNormalisationUnfused,
          "part of a normalisation made of single operators: each reads and writes the whole tensor");
    if (facts_.among_small)
      Say(RooflineReason::kSmallKernels,
          "one of a large kernel and small ones around it: launches and intermediate tensors between them");
    if (facts_.chain > 0 && !facts_.in_normalisation && !facts_.in_attention)
      Say(RooflineReason::kElementwiseChain,
          fmt::format(
              "one of {} operators in a row over the same elements, each of which goes through memory",
              facts_.chain));
  }

  void TensorCores() {
    if (facts_.lane != timeline::Lane::kMatmul || facts_.bound == Bound::kMemory || facts_.no_matrix_units)
      return;
    const ElementType type = facts_.work.type;
    if (type == ElementType::kFloat32 && (facts_.device == nullptr || !facts_.device->amd())) {
      if (facts_.device != nullptr && !HasTensorCores(*facts_.device)) return;
      const bool tf32 = facts_.device != nullptr && facts_.device->tflops.tf32 > facts_.device->tflops.fp32;
      Say(RooflineReason::kNoTensorCores,
          tf32 ? "in float32 outside of the tensor cores, where TF32 or 16 bits would use them"
               : "in float32 outside of the tensor cores, where 16 bits would use them");
    } else if (type == ElementType::kFloat16 && facts_.device != nullptr && !facts_.device->amd()) {
      Say(RooflineReason::kNoTensorCores, "in 16 bits, and yet its kernel does not use the tensor cores");
    }
  }

  bool Aligned(double size) const {
    const auto bytes = static_cast<double>(timeline::ElementBytes(facts_.work.type));
    return bytes == 0 || std::fmod(size * bytes, kAlignedBytes) == 0;
  }

  void OfProduct(const Product& product) {
    if (product.batch > 1 && product.m <= kTile / 2 && product.n <= kTile / 2)
      Say(RooflineReason::kSmallProducts,
          fmt::format("{} products of {} x {} x {}, each smaller than a tile of {} x {}",
                      Count(product.batch), Count(product.m), Count(product.n), Count(product.k),
                      Count(kTile), Count(kTile)));
    else if (std::min(product.m, product.n) < kTile / 2)
      Say(RooflineReason::kThinProduct,
          fmt::format("{} x {} results: the shorter side fills {} of a tile of {}", Count(product.m),
                      Count(product.n), FormatPercent(std::min(product.m, product.n) / kTile), Count(kTile)));
    const double rows = product.a_transposed ? product.m : product.n;
    for (const double size : {product.k, product.n, rows}) {
      if (Aligned(size)) continue;
      Say(RooflineReason::kMisaligned,
          fmt::format("{} is not a multiple of {} elements ({} bytes)", Count(size),
                      Count(kAlignedBytes / static_cast<double>(timeline::ElementBytes(facts_.work.type))),
                      Count(kAlignedBytes)));
      break;
    }
  }

  void OfConvolution(const Convolution& form) {
    const double each = form.in_channels / form.groups;
    too_few_channels_ = each < kChannels;
    if (form.groups > 1 && each == 1)
      Say(RooflineReason::kDepthwise, fmt::format("one channel a group: {} operations for each result are "
                                                  "too few for matrix units, and memory is "
                                                  "the limit",
                                                  Count(2 * form.kernel_pixels)));
    else if (form.groups > 1 && each < 2 * kChannels)
      Say(RooflineReason::kGrouped, fmt::format("{} groups of {} channels, too few to fill matrix units",
                                                Count(form.groups), Count(each)));
    else if (form.in_channels < kChannels)
      Say(RooflineReason::kFewChannels,
          fmt::format("{} input channels in a picture of {} pixels: matrix units want multiples of {}",
                      Count(form.in_channels), Count(form.in_pixels), Count(kChannels)));
    if (form.dilation > 1)
      Say(RooflineReason::kDilated,
          fmt::format("dilated by {}: it reads elements that lie apart", Count(form.dilation)));
    const bool misaligned = form.groups == 1 && form.in_channels >= kChannels &&
                            (!Aligned(form.in_channels) || !Aligned(form.out_channels));
    if (misaligned)
      Say(RooflineReason::kMisaligned,
          fmt::format("{} to {} channels: not multiples of {} bytes", Count(form.in_channels),
                      Count(form.out_channels), Count(kAlignedBytes)));
    if (facts_.converts_layout)
      Say(RooflineReason::kLayout,
          "its tensors are turned from NCHW to NHWC and back by kernels of their own in every call");
    else if (form.channels_last && !*form.channels_last && timeline::ElementBytes(facts_.work.type) == 2)
      Say(RooflineReason::kLayout,
          "its input lies in NCHW order, and matrix units take NHWC (channels_last)");
  }

  void OfAttention(const Attention& form) {
    if (!reached_) return;
    Say(RooflineReason::kAttentionSlow,
        fmt::format("fused, and yet {} of what the {} allows, with {} queries, {} keys and heads of {}",
                    FormatPercent(*reached_), facts_.bound == Bound::kCompute ? "peak" : "memory",
                    Count(form.queries), Count(form.keys), Count(form.head_size)));
  }

  void SayTiny() {
    Say(RooflineReason::kTiny, fmt::format("{} of work: a kernel of its own takes longer to begin and to end",
                                           FormatDuration(static_cast<int64_t>(*facts_.attainable_ns))));
  }

  void OfMemory() {
    if (!facts_.attainable_ns) return;
    if (facts_.work.strided) {
      Say(RooflineReason::kStrided,
          "its tensors do not lie in memory in one order: it jumps while it reads or writes");
    } else {
      Say(RooflineReason::kLowBandwidth,
          fmt::format("{} of the memory's bandwidth, although its tensors are large and lie in order",
                      FormatPercent(*reached_)));
    }
  }

  std::string Tiles(double number) const {
    return Count(number) + (facts_.blocks == 0 ? " tiles of 128 x 128" : number == 1 ? " block" : " blocks");
  }

  void Blocks() {
    const double results = facts_.work.elements;
    double blocks = facts_.blocks;
    if (blocks == 0) {
      const auto* product = std::get_if<Product>(&facts_.work.form);
      if (product == nullptr) return;
      blocks = product->batch * std::ceil(product->m / kTile) * std::ceil(product->n / kTile);
    }
    if (results <= 0) return;
    if (facts_.multiprocessors > 0 && blocks <= kBusyPart * static_cast<double>(facts_.multiprocessors)) {
      Say(RooflineReason::kFewTiles,
          fmt::format("{} for {} {}", Tiles(blocks), Count(static_cast<double>(facts_.multiprocessors)),
                      Multiprocessors()));
    } else if (facts_.multiprocessors == 0 && blocks < kMinMultiprocessors) {
      Say(RooflineReason::kFewTiles,
          fmt::format("{}: no device in the table has so few multiprocessors", Tiles(blocks)));
    }
  }

  const Facts& facts_;
  std::optional<double> reached_;
  bool far_ = false;
  bool too_few_channels_ = false;  // matrix units would not help
  std::vector<RooflineWhy> why_;
};

}  // namespace

std::vector<RooflineWhy> ReasonsFor(const Facts& facts) { return Reasons(facts).All(); }

}  // namespace fullbore::roofline
