#include "tune/knob/knob.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text.h"

namespace fullbore::tune {

namespace {

using nlohmann::json;

std::string Text(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }
std::string InPython(const json& value) {
  return value.is_boolean() ? (value.get<bool>() ? "True" : "False") : Text(value);
}

// ---- which values are legal ----
//
// The same as in the hook's table, python/fullbore/hook/core/settings.py. The upper bounds are far above what helps,
// and below what would bring a machine down: a value may come from somebody else's run.

constexpr int64_t kMostWorkers = 1024, kMostThreads = 1024, kMostBatches = 1024, kMostSamples = 100'000'000;
constexpr int64_t kMostMegabytes = 1'000'000, kMostCpu = 8191;

template <int64_t kLeast, int64_t kMost>
std::string Whole(const json& value) {
  if (value.is_number_integer() && value.get<int64_t>() >= kLeast && value.get<int64_t>() <= kMost) return "";
  return fmt::format("not a whole number from {} to {}", kLeast, kMost);
}

std::string Flag(const json& value) { return value.is_boolean() ? "" : "neither true nor false"; }

std::string Megabytes(const json& value) {
  const double number = value.is_number() ? value.get<double>() : 0;
  if (number > 0 && number <= kMostMegabytes) return "";
  return fmt::format("not a number above 0 and up to {}", kMostMegabytes);
}

std::string OneOf(const json& value, std::initializer_list<std::string_view> names) {
  const std::string text = Text(value);
  if (std::find(names.begin(), names.end(), text) != names.end()) return "";
  return fmt::format("not one of {}", fmt::join(names, ", "));
}

std::string Precisions(const json& value) { return OneOf(value, {"fp32", "bf16", "fp16"}); }
std::string Optimizers(const json& value) { return OneOf(value, {"fused", "foreach"}); }

// "0-3", "0,2", "1", and a bare number, as JSON has it.
std::string Cores(const json& value) {
  const std::string text = Text(value);
  for (const std::string_view part : Split(text, ',')) {
    const size_t dash = part.find('-');
    const auto first = ParseInt(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseInt(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > kMostCpu)
      return "not a list of cores such as 0-3 or 0,2";
  }
  return "";
}

// ---- how they are written ----

template <char const* kCall, char const* kName>
std::string Argument(const json& value) {
  return fmt::format("{}({}={})", kCall, kName, InPython(value));
}

constexpr char kLoader[] = "DataLoader", kDdp[] = "DistributedDataParallel";
constexpr char kWorkers[] = "num_workers", kPrefetch[] = "prefetch_factor",
               kPersistent[] = "persistent_workers", kPinned[] = "pin_memory", kBatch[] = "batch_size",
               kBucket[] = "bucket_cap_mb", kStatic[] = "static_graph";

std::string PrecisionInCode(const json& value) {
  const std::string text = Text(value);
  if (text == "fp32") return "no autocast";
  return fmt::format("torch.autocast(device, torch.{}){}", text == "bf16" ? "bfloat16" : "float16",
                     text == "fp16" ? " and a GradScaler" : "");
}

std::string Tf32InCode(const json& value) {
  return fmt::format("torch.set_float32_matmul_precision(\"{}\")", value == true ? "high" : "highest");
}

std::string ChannelsLastInCode(const json& value) {
  return value == true ? "model.to(memory_format=torch.channels_last), the images too"
                       : "torch.contiguous_format";
}

std::string BenchmarkInCode(const json& value) {
  return "torch.backends.cudnn.benchmark = " + InPython(value);
}

std::string OptimizerInCode(const json& value) {
  return fmt::format("the optimizer with {}=True", Text(value));
}

std::string CompileInCode(const json& value) {
  return value == true ? "model = torch.compile(model)" : "no torch.compile";
}

std::string ThreadsInCode(const json& value) { return fmt::format("torch.set_num_threads({})", Text(value)); }

std::string AffinityInCode(const json& value) { return fmt::format("taskset -c {}", Text(value)); }

std::string FastDataInCode(const json& value) {
  return value == true ? "fullbore run --fast-data" : "DataLoader as it is";
}

std::string AccumulateInCode(const json& value) {
  return fmt::format("optimizer.step() after every {} batches, with each loss divided by it", Text(value));
}

constexpr std::string_view kRounding =
    "rounding: the loss takes a different path, usually to the same result";
constexpr std::string_view kSamePath = "the order of summation, and so the last bits";

constexpr std::array<Knob, 17> kKnobs = {{
    {"precision", "precision", Part::kArithmetic, Searched::kIfAsked, "16-bit matrix products by autocast",
     kRounding, Precisions, PrecisionInCode},
    {"tf32", "precision", Part::kArithmetic, Searched::kIfAsked, "matrix products in TensorFloat-32",
     kRounding, Flag, Tf32InCode},
    {"channels_last", "", Part::kArithmetic, Searched::kAlways, "images with their channels innermost",
     kSamePath, Flag, ChannelsLastInCode},
    {"cudnn_benchmark", "", Part::kArithmetic, Searched::kAlways,
     "cuDNN times its algorithms and picks the fastest", kSamePath, Flag, BenchmarkInCode},
    {"optimizer", "", Part::kArithmetic, Searched::kAlways, "the optimizer's fused or foreach implementation",
     kSamePath, Optimizers, OptimizerInCode},
    {"batch_size", "batch", Part::kOther, Searched::kIfAsked, "samples in a batch",
     "the gradients: for k times the batch, multiply the learning rate by k with SGD, by the square root of k "
     "with Adam and its variants; very large batches need LARS or LAMB and may generalise worse",
     Whole<1, kMostSamples>, Argument<kLoader, kBatch>},
    {"accumulate", "", Part::kOther, Searched::kNever, "batches per step of the optimizer",
     "only rounding if batch_size * accumulate stays the same, except with batch norm",
     Whole<1, kMostSamples>, AccumulateInCode},
    {"compile", "", Part::kArithmetic, Searched::kAlways, "torch.compile", kSamePath, Flag, CompileInCode},
    {"bucket_cap_mb", "", Part::kOther, Searched::kNever,
     "size of the buckets in which gradients are exchanged", "", Megabytes, Argument<kDdp, kBucket>},
    {"static_graph", "", Part::kOther, Searched::kNever, "DDP may assume the same graph in every step", "",
     Flag, Argument<kDdp, kStatic>},
    {"intraop_threads", "threads", Part::kArithmetic, Searched::kAlways,
     "threads that compute an operator on the CPU", kSamePath, Whole<1, kMostThreads>, ThreadsInCode},
    {"cpu_affinity", "", Part::kOther, Searched::kNever, "cores that the training may use", "", Cores,
     AffinityInCode},
    {"fast_data", "", Part::kOtherLoader, Searched::kAlways, "fullbore.data instead of the loader", "", Flag,
     FastDataInCode},
    {"num_workers", "workers", Part::kLoading, Searched::kAlways,
     "processes that load batches beside the training",
     "random numbers drawn in the dataset, which differ with the number of workers", Whole<0, kMostWorkers>,
     Argument<kLoader, kWorkers>},
    {"prefetch_factor", "", Part::kLoading, Searched::kNever, "batches that each worker prepares ahead", "",
     Whole<1, kMostBatches>, Argument<kLoader, kPrefetch>},
    {"persistent_workers", "", Part::kLoading, Searched::kAlways, "workers are kept from epoch to epoch", "",
     Flag, Argument<kLoader, kPersistent>},
    {"pin_memory", "", Part::kLoading, Searched::kAlways,
     "batches in page-locked memory, for faster copies to the device", "", Flag, Argument<kLoader, kPinned>},
}};

}  // namespace

std::span<const Knob> AllKnobs() { return kKnobs; }

const Knob* KnobNamed(std::string_view name) {
  for (const Knob& knob : kKnobs) {
    if (knob.name == name) return &knob;
  }
  return nullptr;
}

std::vector<std::string> KnobsCalled(std::string_view name) {
  std::vector<std::string> names;
  for (const Knob& knob : kKnobs) {
    const bool is_of_loader =
        (knob.part == Part::kLoading || knob.part == Part::kOtherLoader) && knob.searched != Searched::kNever;
    if (name == "all" || name == knob.name || (!name.empty() && name == knob.called) ||
        (name == "loader" && is_of_loader))
      names.emplace_back(knob.name);
  }
  return names;
}

bool IsOfLoader(const Knob& knob, const json& value) {
  return knob.in_code(value).starts_with(std::string(kLoader) + "(");
}

}  // namespace fullbore::tune
