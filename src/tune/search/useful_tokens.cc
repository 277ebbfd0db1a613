#include "tune/search/useful_tokens.h"

#include <utility>

#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/view.h"
#include "tune/knob/knob.h"

namespace fullbore::tune {

namespace {

constexpr const char* kHint = "--objective throughput counts samples";

Rate Times(const Rate& rate, double factor) {
  return {rate.mean * factor, rate.low * factor, rate.high * factor};
}

bool SetsKnobsOnly(const Settings& settings) {
  for (const auto& [name, value] : settings) {
    if (KnobNamed(name) == nullptr) return false;
  }
  return true;
}

// It did what it should, and cannot be compared.
void Refuse(const Error& error, Trial& trial) {
  trial.outcome = Outcome::kRefused;
  trial.rate.reset();
  trial.why = error.text + "; " + error.hint;
}

}  // namespace

std::optional<diagnose::SampleTokens> SampleTokensOf(const record::Recording& recording) {
  const record::Stage* stage = diagnose::JudgedStage(recording);
  if (stage == nullptr) return std::nullopt;
  return diagnose::SampleTokensOf(diagnose::View(recording, *stage));
}

// A sample of another length may be slower and its tokens faster: what is ended early must hold the same samples.
Request UsefulTokens::InSamples(Request request) const {
  const bool same_samples = own_ && SetsKnobsOnly(request.settings);
  if (!same_samples) request.hopeless_below.reset();
  if (request.hopeless_below) *request.hopeless_below /= *own_;
  if (request.predicted) *request.predicted /= own_.value_or(1);
  return request;
}

Result<double> UsefulTokens::TokensOf(const Trial& trial) {
  const auto refused = [](const char* text) { return Error{ErrorCode::kUnsupported, text, kHint}; };
  const auto counted = count_(trial);
  if (!counted) return refused("no tokens were seen: no integers that the model looks up in an embedding");
  if (trial.unit != kSamplesPerSecond)
    return refused("its samples could not be counted, and so its tokens could not be, either");
  const double tokens = counted->useful.value_or(counted->computed);
  if (!own_) {
    own_ = tokens;
    tells_padding_ = counted->useful.has_value();
  }
  if (diagnose::AreOfTheSameSamples(tokens, *own_)) return *own_;
  if (counted->useful.has_value() != tells_padding_)
    return refused("unlike in the script as it is, nothing shows which of its tokens are padding");
  return tokens;
}

Trial UsefulTokens::InTokens(Trial trial) {
  if (!trial.ok()) return trial;
  const auto tokens = TokensOf(trial);
  if (!tokens) {
    Refuse(tokens.error(), trial);
    return trial;
  }
  trial.rate = Times(*trial.rate, *tokens);
  if (trial.predicted) *trial.predicted *= own_.value_or(1);
  trial.unit = kTokensPerSecond;
  return trial;
}

Trial UsefulTokens::Try(const Request& request) { return InTokens(inner_.Try(InSamples(request))); }

std::vector<Trial> UsefulTokens::TryAll(const std::vector<Request>& requests) {
  std::vector<Request> in_samples;
  for (const Request& request : requests) in_samples.push_back(InSamples(request));
  std::vector<Trial> trials;
  for (Trial& trial : inner_.TryAll(in_samples)) trials.push_back(InTokens(std::move(trial)));
  return trials;
}

std::optional<PairOfTrials> UsefulTokens::TryPair(const Request& before, const Request& after) {
  auto pair = inner_.TryPair(InSamples(before), InSamples(after));
  if (!pair) return std::nullopt;
  pair->before = InTokens(std::move(pair->before));
  pair->after = InTokens(std::move(pair->after));
  return pair;
}

// A worker's time for a sample becomes its time for a token.
std::optional<Known> UsefulTokens::Learn(const Trial& trial) {
  auto known = inner_.Learn(trial);
  if (!known || !own_) return known;
  known->useful_tokens = own_;
  known->fetch_s /= *own_;
  known->fetch_cpu_s /= *own_;
  return known;
}

}  // namespace fullbore::tune
