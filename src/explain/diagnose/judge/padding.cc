// padding: much of what the model computes are tokens that only fill samples to one length. The recorded lengths tell how
// many tokens would be left, and the steps themselves how their time follows them.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/advice.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/tokens.h"

namespace fullbore::diagnose {

using record::Share;

namespace {

// How the time of the passes bends with the width of the batch, from -1 to 1: 0 where it is in proportion to the tokens; at
// 1 it is to their squares, as attention's scores are; at -1 it is the same for any width.
struct Bend {
  double expected = 0, low = 0, high = 0;
};

// What remains of the passes' time where samples take `after` of their batches in place of `before`.
double Remains(double bend, const Width& before, const Width& after) {
  const double tokens = after.tokens / before.tokens, squares = after.squares / before.squares;
  return bend < 0 ? (1 + bend) * tokens - bend : (1 - bend) * tokens + bend * squares;
}

// In a transformer's layer of d features a token takes 24 d^2 operations for products with weights, and 4 w d for its scores
// over a row of w tokens: w / (w + 6 d) of all. On a CPU the scores cost twice as much for each, up to seven times, because
// they fill memory. A recurrent layer has a fixed cost for each of its steps, and is prepared anew for every width.
Bend BendOf(const Tokens& tokens) {
  if (!tokens.attends) return {kBendOfOthers, kLeastBendOfOthers, kMostBendOfOthers};
  const double width = tokens.computed.squares / tokens.computed.tokens;
  const auto bend = [&](double features) { return width / (width + features * tokens.features); };
  return {bend(kFeaturesOfAttention), 0, bend(kLeastFeaturesOfAttention)};
}

// One way to put samples together.
enum class How : uint8_t { kLongest, kGrouped, kPacked };
struct Way {
  How how;
  Width width;
  const char* change;
  const char* fix;
};

constexpr char kLongest[] =
    "pad each batch to its own longest sample, where it is put together: in the collate function, "
    "nn.utils.rnn.pad_sequence; Transformers: DataCollatorWithPadding, without padding=\"max_length\" before";
constexpr char kGrouped[] =
    "put samples of like length together, each batch padded to its longest: a batch_sampler that sorts by length "
    "within some fifty batches; Transformers: train_sampling_strategy=\"group_by_length\" (before Transformers 5 "
    "group_by_length=True)";
constexpr char kPacked[] =
    "where each token has a loss of its own (a language model): pack samples into rows of one length, with attention "
    "within each sample only; TRL: packing=True";

double Passes(const RankView& rank) { return rank.Ratio(Share::kForward) + rank.Ratio(Share::kBackward); }

Speedup GainOf(double passes, const Tokens& tokens, const Way& way) {
  const auto gain = [&](double bend) {
    return 1 / (1 - std::min(passes * (1 - Remains(bend, tokens.computed, way.width)), kMostOfAStep));
  };
  const Bend bend = BendOf(tokens);
  return {gain(bend.expected), gain(bend.low), gain(bend.high)};
}

// Whether the step's time would follow: where the loader sets the pace, it would not.
bool LoaderSetsThePace(const RankView& rank) {
  const record::Loader* loader = rank.TrainingLoader();
  return loader != nullptr && loader->num_workers > 0 && rank.Ratio(Share::kDataWait) >= kDataWait.warning;
}

// The part of the step that is known to be computed for each token.
std::optional<double> PassesOverTokens(const View& view, const Tokens& tokens) {
  const RankView& rank = view.lead();
  const bool known = tokens.follows && (!tokens.attends || tokens.features > 0);
  if (!known || view.ranks().size() > 1 || LoaderSetsThePace(rank) || !view.ComputesOnCpu())
    return std::nullopt;
  return Passes(rank) * *tokens.follows;
}

// The ways that leave fewer tokens than the one before, from the simplest on. Packing is another way to gain what sorting
// does, which leaves the order of the samples as it is: it is named beside that.
std::vector<Way> WaysOf(const RankView& rank, const Tokens& tokens) {
  const record::Loader* loader = rank.TrainingLoader();
  const auto samples = loader ? loader->dataset_samples : std::nullopt;
  const Width grouped = tokens.Grouped(BatchesSorted(samples, tokens.samples / tokens.batches));
  std::vector<Way> ways;
  double least = tokens.computed.tokens;
  for (const Way& way : {Way{How::kLongest, tokens.longest, "padding=\"longest\"", kLongest},
                         Way{How::kGrouped, grouped, "batches of samples of like length", kGrouped},
                         Way{How::kPacked, tokens.Packed(), "packing", kPacked}}) {
    const double before = way.how == How::kPacked ? tokens.longest.tokens : least;
    if (way.width.tokens > kFewerTokens * std::min(before, tokens.computed.tokens)) continue;
    least = way.width.tokens;
    ways.push_back(way);
  }
  return ways;
}

// The first that saves most of what sorting would; packing changes what a row is, and is only named.
const Way* Recommended(const std::vector<Way>& ways, const Tokens& tokens) {
  const auto saved = [&](const Way& way) { return tokens.computed.tokens - way.width.tokens; };
  const Way* best = nullptr;
  for (const Way& way : ways) {
    if (way.how == How::kPacked) continue;
    if (best == nullptr || saved(*best) < kMostOfSavedTokens * saved(way)) best = &way;
  }
  return best;
}

std::string Words(const Way& way, const Tokens& tokens, const std::optional<double>& passes) {
  std::string gain;
  if (passes) gain = fmt::format(", {:.2f}x", GainOf(*passes, tokens, way).expected);
  return fmt::format("{} ({} of {} tokens a sample are left{})", way.fix, FormatCount(way.width.tokens),
                     FormatCount(tokens.computed.tokens), gain);
}

void AddEvidence(const Tokens& tokens, Finding& finding) {
  const EvidenceBuilder evidence(finding);
  evidence.FromHook("of the tokens in batches, padding", tokens.Padding(), "ratio");
  evidence.FromHook("tokens of a sample, on average", tokens.useful, "count");
  evidence.FromHook("tokens that it takes in its batch", tokens.computed.tokens, "count");
  evidence.FromHook("samples whose lengths were looked at", tokens.samples, "count");
  if (tokens.follows)
    evidence.FromHook("of the work of the model's modules, what is done for each token", *tokens.follows,
                      "ratio");
}

void Advise(const View& view, const Tokens& tokens, Finding& finding) {
  const auto passes = PassesOverTokens(view, tokens);
  const std::vector<Way> ways = WaysOf(view.lead(), tokens);
  const Way* best = Recommended(ways, tokens);
  AddEvidence(tokens, finding);
  if (best != nullptr) {
    finding.change = best->change;
    finding.fix = {Words(*best, tokens, passes)};
    finding.costs = best->how == How::kGrouped ? replay::Cost::kNumerics : replay::Cost::kCode;
    if (best->how == How::kGrouped) finding.supersedes.push_back({"unstable-steps", "shapes"});
  }
  for (const Way& way : ways) {
    if (&way != best) finding.fix.push_back(Words(way, tokens, passes));
  }
  if (view.Fact("compile") && tokens.widths == 1)
    finding.fix.emplace_back(
        "for a compiled model: pad to a few lengths, multiples of 64, rather than to any");
  if (best == nullptr || !passes) return;
  finding.speedup = GainOf(*passes, tokens, *best);
  finding.method =
      "the recorded lengths batched anew; the passes' time falls with the tokens, attention's with their squares";
}

}  // namespace

std::optional<Finding> JudgePadding(const View& view, Diagnosis& /*diagnosis*/) {
  const auto tokens = TokensOf(view);
  if (!tokens) return std::nullopt;
  const RankView& rank = view.lead();
  // What the passes take on a device is not the host's time, and a model may sum its tokens up before it computes.
  const bool known = view.ComputesOnCpu() && tokens->follows;
  const double cost = known ? Passes(rank) * *tokens->follows * tokens->Padding() : 0;
  const auto severity = SeverityOf(known ? cost : tokens->Padding(), kPaddingComputed, rank.steps);
  if (!severity) return std::nullopt;
  Finding finding;
  finding.severity = known ? *severity : Severity::kInfo;
  finding.share = cost;
  finding.open = !known;
  finding.title = fmt::format(
      "{} of the tokens in a batch are padding: a sample has {} of its own, on average, and takes {}.",
      FormatPercent(tokens->Padding()), FormatCount(tokens->useful), FormatCount(tokens->computed.tokens));
  Advise(view, *tokens, finding);
  return finding;
}

}  // namespace fullbore::diagnose
