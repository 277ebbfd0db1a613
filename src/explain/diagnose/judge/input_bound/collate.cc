#include "explain/diagnose/judge/input_bound/collate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "explain/diagnose/advice.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/recorded_pipeline.h"
#include "explain/diagnose/thresholds.h"
#include "record/json_text.h"

namespace fullbore::diagnose {

using nlohmann::json;
using replay::Pipeline;

namespace {

// Collate counts as blocked where it spends at least this part of its time off the cores: more than half.
constexpr double kMostlyBlocked = 0.5;

// With fetches that became so cheap that the training need not stop for them.
Pipeline Unbroken(Pipeline changed) {
  changed.unbroken = changed.unbroken || changed.threads > 1;
  return changed;
}

void Predict(Input& input, Pipeline changed, const std::string& method) {
  input.finding.speedup = PredictSpeedup(input.rank.MeanStepNs(), Unbroken(std::move(changed)));
  input.finding.method = method;
}

// Each end of the range from a pipeline of its own; no more than without this part of the step.
Speedup PredictEach(const Input& input, const Pipeline& expected, const Pipeline& least, const Pipeline& most,
                    double part) {
  const double step_ns = input.rank.MeanStepNs(), bound = 1 / (1 - std::min(part, kMostOfAStep));
  const Speedup middle = PredictSpeedup(step_ns, Unbroken(expected));
  const double low = std::min(middle.low, PredictSpeedup(step_ns, Unbroken(least)).low);
  const double high = std::max(middle.high, PredictSpeedup(step_ns, Unbroken(most)).high);
  return {std::min(middle.expected, bound), std::min(low, bound), std::min(high, bound)};
}

void ScaleFetch(Pipeline& pipeline, double kept) {
  for (double& ns : pipeline.fetch_ns) ns *= kept;
  pipeline.fetch_cpu_ns *= kept;
}

// ---- torch's own collate ----

// What a dataset that hands over whole batches still has to do itself, of what torch's function does: it copies each
// sample, so many nanoseconds a byte, and of the rest, which is calls for each sample, so much goes away. Measured on
// datasets that make each sample anew: 15 % of a fetch, of which collate took 22 %.
struct OfCollate {
  double saved, copy_ns_per_byte;
};
constexpr OfCollate kOfCollate = {0.5, 0.5}, kLeastOfCollate = {0.25, 1}, kMostOfCollate = {1, 0};

Pipeline WithoutCalls(const Input& input, const OfCollate& of_collate) {
  const double copied_ns = of_collate.copy_ns_per_byte * BytesOfBatch(input.view);
  const double saved_ns = of_collate.saved * std::max(0.0, input.parts.collate - copied_ns);
  Pipeline changed = input.pipeline;
  ScaleFetch(changed, 1 - input.parts.Part(saved_ns));
  return changed;
}

// PyTorch's page on automatic batching names this way.
void AdviseWholeBatches(Input& input) {
  input.finding.fix = {
      "fetch whole batches: DataLoader(dataset, batch_size=None, sampler=BatchSampler(...)), with a "
      "__getitem__ that takes a list of indices and makes each tensor of the batch at once; samples are then "
      "not put together one by one",
      "return few tensors from __getitem__: each of them is put together by itself"};
  input.finding.speedup = PredictEach(
      input, WithoutCalls(input, kOfCollate), WithoutCalls(input, kLeastOfCollate),
      WithoutCalls(input, kMostOfCollate), input.finding.share * input.parts.Part(input.parts.collate));
  input.finding.method =
      "replay of the recorded steps with a quarter to all of collate removed from every fetch, but for the "
      "copying";
}

// ---- Slices ----

// Of one sample.
struct Slices {
  double fields = 0, bytes = 0;
};

std::optional<Slices> SlicesOf(const Input& input) {
  const auto text = input.view.Fact("slices");
  const json said = text ? record::ParseJson(*text) : json();
  const auto loader = said.is_object() ? said.find(std::to_string(input.loader.id)) : said.end();
  if (!said.is_object() || loader == said.end() || !loader->is_object()) return std::nullopt;
  return Slices{record::NumberIn(*loader, "fields"), record::NumberIn(*loader, "bytes")};
}

// What indexing a batch at once leaves of a fetch of slices, by batches of 64 to 4,096 samples of 4 to 3,072 floats:
// 6 to 25 % of its calls, 0.1 to 0.2 ns a byte, and some ten microseconds of its own. What taking a slice costs is not
// more of a sample's time than this for each field: the rest is the dataset's own code, and stays. And of the garbage
// collections, which these objects bring about, so much goes.
struct OfSlices {
  double left, copy_ns_per_byte, own_ns, slice_ns, collections;
};
constexpr OfSlices kOfSlices = {0.15, 0.15, 15e3, 2e3, 0.9};
constexpr OfSlices kLeastOfSlices = {0.25, 0.25, 30e3, 1e3, 0.5};
constexpr OfSlices kMostOfSlices = {0.05, 0, 0, std::numeric_limits<double>::infinity(), 1};

// Python collects the youngest objects whenever there are so many more of them than were dropped: a batch whose samples
// are as many brings about collections by itself.
constexpr double kObjectsUntilCollected = 700;

// Of a step: collections within its fetches, if these objects bring them about.
double CollectionsNs(const Input& input, const Slices& slices) {
  const double objects = input.parts.samples * (slices.fields + 1);
  if (input.loader.num_workers > 0 || objects < kObjectsUntilCollected) return 0;
  return CollectionsInFetchesNs(input.view);
}

Pipeline WithBatchesAtOnce(const Input& input, const Slices& slices, const OfSlices& of_slices) {
  const FetchParts& parts = input.parts;
  const double collections_ns =
      CollectionsInFetchesNs(input.view) / std::max(1.0, input.pipeline.batches_per_step);
  const double fetch_ns = std::max(1.0, parts.total - collections_ns);
  const double getting_ns = std::max(0.0, fetch_ns - parts.collate);
  const bool only_slices = input.loader.dataset == "TensorDataset";
  const double slicing_ns =
      only_slices ? getting_ns : std::min(getting_ns, of_slices.slice_ns * slices.fields * parts.samples);
  // Taking a slice touches none of its bytes; putting them together waits for those that a mapped file has yet to read.
  const double reads_ns = std::min(parts.blocked, parts.collate);
  const double calls_ns = std::min(fetch_ns, parts.collate + slicing_ns) - reads_ns;
  const double left_ns = of_slices.left * calls_ns +
                         of_slices.copy_ns_per_byte * slices.bytes * parts.samples + of_slices.own_ns;
  Pipeline changed = input.pipeline;
  ScaleFetch(changed, 1 - std::max(0.0, calls_ns - left_ns) / fetch_ns);
  const double kept =
      1 - of_slices.collections * CollectionsNs(input, slices) /
              std::max(1.0, input.rank.MeanStepNs() * (1 - input.rank.Ratio(record::Share::kDataWait)));
  for (double& ns : changed.consume_ns) ns *= kept;
  changed.train_cpu_ns *= kept;
  return changed;
}

int64_t BatchSize(const Input& input) {
  return input.loader.batch_size.value_or(std::llround(input.parts.samples));
}

// In the order of the loader as it is, with the last batch that it has or has not, and only this rank's samples.
std::string BatchesOf(const record::Loader& loader) {
  if (!loader.batch_size) return "sampler=loader.batch_sampler";
  return fmt::format("sampler=BatchSampler(loader.sampler, {}, loader.drop_last)", *loader.batch_size);
}

void AddEvidence(Input& input, const Slices& slices, double collections) {
  const EvidenceBuilder evidence(input.finding);
  evidence.FromHook("fields of a sample", slices.fields, "count");
  evidence.FromHook("bytes of its slices", slices.bytes, "bytes");
  if (collections > 0) evidence.FromHook("garbage collections while it is fetched", collections, "ratio");
}

}  // namespace

void BlameCollate(Input& input) {
  const FetchParts& parts = input.parts;
  input.finding.cause = "collate";
  // Off the cores for most of it: it waits for something rather than computes.
  const bool blocked = parts.blocked >= kMostlyBlocked * parts.collate;
  input.finding.title = fmt::format(
      "{}: {} of a batch's fetch is spent in collate, {}.", WaitsFor(input),
      FormatPercent(parts.Part(parts.collate)),
      blocked ? "waiting (a lock, a sleep, a remote call), not computing" : "putting samples together");
  if (blocked) {
    input.finding.fix = {
        "find what collate waits for, and do it once, before training, or in the dataset's __getitem__, "
        "where more workers overlap it"};
    Pipeline changed = input.pipeline;  // what collate computes remains
    for (double& ns : changed.fetch_ns) ns *= 1 - parts.Part(std::min(parts.blocked, parts.collate));
    return Predict(input, WithoutSleep(std::move(changed)),
                   "replay of the recorded steps with the time that collate waits removed from every fetch");
  }
  if (input.loader.default_collate) return AdviseWholeBatches(input);
  input.finding.fix = {
      "build the batch with one vectorised operation (torch.stack of preallocated tensors) instead of "
      "Python loops",
      "do per-sample work in the dataset's __getitem__, where workers share it evenly",
      "pad to a few fixed lengths; let the dataset return tensors, not lists"};
  Pipeline changed = input.pipeline;
  ScaleFetch(changed, 1 - parts.Part(parts.collate));
  Predict(input, changed, "replay of the recorded steps with collate removed from every fetch");
}

bool BlameSlices(Input& input) {
  const auto slices = SlicesOf(input);
  if (!slices || input.parts.Part(input.parts.blocked) >= kPartOfFetch) return false;
  Finding& finding = input.finding;
  const double collections = CollectionsNs(input, *slices) / std::max(1.0, input.rank.MeanStepNs());
  const Speedup gain = PredictEach(
      input, WithBatchesAtOnce(input, *slices, kOfSlices), WithBatchesAtOnce(input, *slices, kLeastOfSlices),
      WithBatchesAtOnce(input, *slices, kMostOfSlices), finding.share + collections);
  if (!IsWorthwhile(gain)) return false;
  finding.cause = "slices";
  finding.title = fmt::format(
      "{}: the {} samples of a batch, slices of what is in memory, are taken one by one and put together "
      "again{}.",
      WaitsFor(input), FormatCount(static_cast<double>(BatchSize(input))),
      collections < kHostOther.warning
          ? ""
          : fmt::format(" ({} more for the garbage of that)", FormatPercent(collections)));
  const bool takes_lists = input.loader.dataset == "TensorDataset";
  finding.fix = {
      fmt::format("fetch whole batches, with the sampler of the loader as it is: DataLoader(loader.dataset, "
                  "batch_size=None, {}){}",
                  BatchesOf(input.loader),
                  takes_lists ? "; a TensorDataset takes a list of indices as it is"
                              : ", with a __getitem__ that takes a list of indices")};
  finding.speedup = gain;
  finding.method =
      "replay of the recorded steps with fetches that index a whole batch at once; of the garbage "
      "collections within them, half to all removed";
  input.removes_besides = collections;
  AddEvidence(input, *slices, collections);
  return true;
}

}  // namespace fullbore::diagnose
