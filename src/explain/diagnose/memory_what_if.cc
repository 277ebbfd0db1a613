#include "explain/diagnose/memory_what_if.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/memory_budget.h"
#include "explain/diagnose/peak_curve.h"

namespace fullbore::diagnose {

namespace {

constexpr size_t kRefutable = 3;  // sizes: a line goes through any two
constexpr int64_t kMostNumber = 1'000'000'000;

std::string Named(const BatchSize& batch) {
  const std::string rows = FormatCount(batch.rows);
  if (batch.width <= 0) return rows + (batch.rows == 1 ? " sample" : " samples");
  return fmt::format("{} {} of {} tokens", rows, batch.rows == 1 ? "row" : "rows", FormatCount(batch.width));
}

const ReachedPeak& Highest(const HeldMemory& held) {
  return *std::ranges::max_element(held.peaks, {}, &ReachedPeak::bytes);
}

// Why nothing can be said of another batch.
std::string MissingIn(const HeldMemory* held, const MemoryChange& change) {
  if (held == nullptr)
    return "the run recorded no memory of a device: it trained on the CPU, not with PyTorch, or was recorded by an older "
           "fullbore";
  if (held->peaks.empty()) return "no step came to its end whose batch could be seen";
  if (change.width && Highest(*held).batch.width <= 0)
    return "the model is not called with a matrix of tokens, so that the length of its sequences is not known";
  if (held->total.value_or(0) <= 0) return "how much memory the device has is not known";
  return "";
}

std::string AssumedOf(const PeakCurve& curve, const HeldMemory& held, const MemoryChange& change) {
  const bool tokens = Highest(held).batch.width > 0;
  const char* by_length = ", and with the length of a row by itself to its square";
  if (curve.sizes() == 1)
    return std::string(
               "batches of one size were seen: what is neither weights nor states is taken to grow in proportion") +
           (tokens && change.width ? by_length : "");
  if (curve.sizes() == 2)
    return "batches of two sizes were seen: a line through both, and the steepest that is possible";
  return "";
}

void Predict(const View& view, const HeldMemory& held, const PeakCurve& curve, const BatchSize& batch,
             MemoryWhatIf& answer) {
  const double peak = PeakOf(view, held), outside = held.outside.value_or(0);
  const double fragments = ReservedOf(view, held) - peak;
  const PeakCurve::Range tensors = curve.At(batch);
  answer.total = *held.total;
  answer.now = peak + fragments + outside;
  answer.low = tensors.low + outside;  // in pieces that all are of use
  answer.expected = tensors.expected + fragments + outside;
  answer.high = tensors.high + fragments * std::max(1.0, tensors.high / peak) + outside;
  answer.batch = Named(batch);
  answer.seen = Named(Highest(held).batch);
  answer.sizes = curve.sizes();
}

// The largest number below `limit` for which `fits` holds, as it does for all smaller ones; 0 where it does for none.
template <typename Fits>
int64_t Most(double limit, Fits fits) {
  int64_t low = 0, high = static_cast<int64_t>(limit);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(static_cast<double>(middle)) ? low : high) = middle;
  }
  return low;
}

// What was under way. Which of several ranks was refused is not told: then only what was under way on all of them.
std::optional<HeldMemory> UnderWay(const View& view) {
  std::optional<HeldMemory> found;
  for (const record::RankInfo& rank : view.stage().ranks) {
    auto held = HeldMemoryOf(rank);
    if (!held || !held->under_way || (found && found->under_way != held->under_way)) return std::nullopt;
    if (!found) found = std::move(held);
  }
  return found;
}

}  // namespace

Result<bool> ReadMemoryChange(std::string_view text, MemoryChange& change) {
  const bool rows = text.starts_with("batch="), width = text.starts_with("seq=");
  if (!rows && !width) return false;
  const auto number = ParseInt(text.substr(text.find('=') + 1));
  if (!number || *number < 1 || *number > kMostNumber)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--what-if: '{}' is no size of a batch of a run", text),
                 rows ? "a number of samples: batch=64" : "a number of tokens: seq=4096"};
  (rows ? change.rows : change.width) = *number;
  change.text += (change.text.empty() ? "" : ",") + std::string(text);
  return true;
}

MemoryWhatIf WhatIfOf(const record::Recording& recording, const std::string& stage_name,
                      const MemoryChange& change) {
  MemoryWhatIf answer;
  answer.change = change.text;
  const record::Stage* stage = JudgedStage(recording, stage_name);
  if (stage == nullptr) return answer.missing = "nothing was recorded", answer;
  const View view(recording, *stage);
  const auto held = FullestRank(view);
  answer.missing = MissingIn(held ? &*held : nullptr, change);
  if (!answer.missing.empty()) return answer;
  const auto curve = PeakCurve::Through(*held);
  if (!curve) {
    answer.missing = fmt::format("the peaks of batches of {} sizes lie on no line", held->peaks.size());
    return answer;
  }
  BatchSize batch = Highest(*held).batch;
  if (change.width) batch = batch.WithWidth(static_cast<double>(*change.width));
  if (change.rows) batch = batch.WithRows(static_cast<double>(*change.rows));
  Predict(view, *held, *curve, batch, answer);
  answer.assumes = AssumedOf(*curve, *held, change);
  return answer;
}

std::optional<FittingBatch> FittingBatchOf(const View& view, const RefusedMemory& refused) {
  const auto held = UnderWay(view);
  const auto curve = held ? PeakCurve::Through(*held) : std::nullopt;
  if (!curve || curve->sizes() < kRefutable || !refused.allocated || !refused.free) return std::nullopt;
  const double room = *refused.allocated + *refused.free;  // what lies in pieces is left out
  const auto fits = [&](const BatchSize& batch) { return curve->At(batch).high <= room; };
  const BatchSize& batch = *held->under_way;
  if (fits(batch)) return std::nullopt;  // then it was not for its size
  FittingBatch fitting{Named(batch), 0, std::nullopt, curve->sizes()};
  fitting.rows = Most(batch.rows, [&](double rows) { return fits(batch.WithRows(rows)); });
  if (batch.width > 0)
    fitting.width = Most(batch.width, [&](double width) { return fits(batch.WithWidth(width)); });
  if (fitting.rows == 0 && fitting.width.value_or(0) == 0) return std::nullopt;
  return fitting;
}

}  // namespace fullbore::diagnose
