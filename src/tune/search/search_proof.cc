// The proof: what the search found against the script as it is, in pairs of trials that are made for that. Then, in the
// time that is left, what a larger batch would bring to it.
#include <algorithm>
#include <utility>

#include "tune/search/searcher.h"

namespace fullbore::tune {

namespace {

constexpr const char* kWhy = "the proof: before and after in turns";
// Pairs that most proofs need. A proof may not need more of the time than this part: there has to be something to prove.
constexpr double kUsualPairs = 3, kMostOfTheTime = 0.4;
constexpr size_t kMostFinalists = 3;

Request RequestFor(const Trial& finalist) {
  return {finalist.settings,  kWhy,         /*proves=*/true,
          finalist.predicted, std::nullopt, {finalist.peak_memory_bytes, finalist.memory_filled}};
}

}  // namespace

bool Searcher::IsOver() const {
  if (laboratory_.IsOver() || apart_) return laboratory_.IsOver();
  const auto time = laboratory_.time();
  if (!time || trials_.empty()) return false;
  const bool has_change = best_ != 0 && trials_[best_].ok();
  const double pair_s = trials_.front().seconds + (has_change ? trials_[best_] : trials_.front()).seconds;
  const double for_the_proof_s = std::min(kUsualPairs * pair_s, kMostOfTheTime * time->all_s);
  return time->left_s - trials_.back().seconds < for_the_proof_s;
}

// What is to be proven next; nothing where the script as it is is favoured.
std::optional<Trial> Searcher::Finalist() const {
  auto favourite = FavouriteOf(question_, known_, trials_, proofs_);
  if (!favourite) return std::nullopt;
  // What the search went by is more than one measurement, where it is as good as what only looks the lightest of the
  // fast.
  const bool is_searched =
      (question_.objective == Objective::kThroughput || question_.objective == Objective::kTokens) &&
      !question_.exhaustive && proofs_.empty();
  const bool is_change = Best().settings != trials_.front().settings;
  const bool is_as_good = BestRate() >= Near() * favourite->rate->mean;
  if (is_searched && is_change && is_as_good && IsFit(Best()) && !Best().cut_short) favourite = Best();
  if (favourite->settings == trials_.front().settings) return std::nullopt;
  return favourite;
}

const Trial& Searcher::NoteProof(Trial trial, const Trial& finalist) {
  trial.predicted = finalist.predicted;
  trial.apart = finalist.apart;
  trial.proves = true;
  if (trial.in_slices) trial.memory_filled = finalist.memory_filled;  // not what both filled together
  return trials_.emplace_back(std::move(trial));
}

// A trial that counts; nothing where time is up.
std::optional<Trial> Searcher::TryToProve(const Trial& finalist) {
  if (laboratory_.IsOver()) {
    ended_early_ = true;
    return std::nullopt;
  }
  Trial trial = laboratory_.Try(RequestFor(finalist));
  if (laboratory_.IsOver() && !trial.ok()) {
    ended_early_ = true;
    return std::nullopt;
  }
  return NoteProof(std::move(trial), finalist);
}

// Of the same slices of time where they can be had, else one run after the other.
std::optional<PairOfTrials> Searcher::PairToProve(size_t earlier, const Trial& baseline,
                                                  const Trial& finalist) {
  if (!laboratory_.IsOver()) {
    if (auto pair = laboratory_.TryPair(RequestFor(baseline), RequestFor(finalist))) {
      return PairOfTrials{NoteProof(std::move(pair->before), baseline),
                          NoteProof(std::move(pair->after), finalist)};
    }
  }
  return MakePair(earlier, [&](bool as_it_is) { return TryToProve(as_it_is ? baseline : finalist); });
}

void Searcher::Prove(const Trial& baseline, const Trial& finalist, Proof& proof) {
  proof.settings = finalist.settings;
  proof.within = question_.within;
  proof.asks_for_less = AsksForLess(question_, known_, finalist, baseline);
  while (proof.pairs.size() < kMostPairs && proof.verdict == Verdict::kOpen) {
    const auto pair = PairToProve(proof.pairs.size(), baseline, finalist);
    if (!pair) return;
    const Trial &before = pair->before, &after = pair->after;
    if (!after.ok() || !IsFit(after)) proof.verdict = Verdict::kFailed;
    // A script as it is that fails, or is counted in another unit, proves nothing of the setting.
    if (!after.ok() || !before.ok() || before.unit != after.unit) return;
    proof.Add({*before.rate, *after.rate, before.in_slices && after.in_slices});
  }
}

void Searcher::ProveTheBest() {
  const Trial baseline = trials_.front();
  while (proofs_.size() < kMostFinalists) {
    const auto finalist = Finalist();
    if (!finalist) return;
    Prove(baseline, *finalist, proofs_.emplace_back());
    const Verdict verdict = proofs_.back().verdict;
    if (verdict != Verdict::kNoGain && verdict != Verdict::kFailed) return;
  }
}

// From what is recommended on, with its loader as it is. What the batch itself is not proven to bring stays a trial.
void Searcher::BatchApart() {
  if (!question_.batch_apart || laboratory_.IsOver()) return;
  const bool is_proven = !proofs_.empty() && proofs_.back().recommends();
  const Trial chosen = *Find(is_proven ? proofs_.back().settings : trials_.front().settings);
  best_ = static_cast<size_t>(Find(chosen.settings) - trials_.data());
  apart_ = true;
  Batch();
  const auto size = [&](const Trial& trial) {
    const auto at = trial.settings.find("batch_size");
    return at == trial.settings.end() ? known_.Own("batch_size").value_or(0) : at->second.get<int64_t>();
  };
  if (Trial found = Best(); size(found) > size(chosen)) {
    const bool ended_early = ended_early_;
    larger_batch_.emplace(LargerBatch{found, {}});
    Prove(chosen, found, larger_batch_->proof);
    ended_early_ = ended_early;  // the answer is there
  }
  apart_ = false;
}

}  // namespace fullbore::tune
