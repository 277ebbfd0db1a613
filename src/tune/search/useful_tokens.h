// The laboratory of a search for the most useful tokens a second: those that the model computes and that are no padding.
//
// It stands before another one, whose rates count samples, and multiplies what comes of each trial by the useful tokens of
// a sample, which the trial's recording tells. These are counted in some batches: between trials of the same samples they
// differ by chance alone. Where they are as near to those of the script as it is, they are taken for the same, so that an
// answer in tokens is as exact as one in samples; a placeholder that packs samples, or cuts them, gets its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "explain/diagnose/tokens.h"
#include "record/recording.h"
#include "tune/search/search.h"

namespace fullbore::tune {

// As its recording says; nothing where the model looks no integers up.
std::optional<diagnose::SampleTokens> SampleTokensOf(const record::Recording& recording);

class UsefulTokens : public Laboratory {
 public:
  using Count = std::function<std::optional<diagnose::SampleTokens>(const Trial&)>;
  // `inner` is not owned.
  UsefulTokens(Laboratory& inner, Count count) : inner_(inner), count_(std::move(count)) {}

  Trial Try(const Request& request) override;
  std::vector<Trial> TryAll(const std::vector<Request>& requests) override;
  std::optional<PairOfTrials> TryPair(const Request& before, const Request& after) override;
  std::optional<Known> Learn(const Trial& trial) override;
  bool IsOver() const override { return inner_.IsOver(); }
  std::optional<Time> time() const override { return inner_.time(); }

 private:
  Request InSamples(Request request) const;
  Trial InTokens(Trial trial);
  // Of a sample of this trial, or why they are not known.
  Result<double> TokensOf(const Trial& trial);

  Laboratory& inner_;
  Count count_;
  std::optional<double> own_;   // tokens of a sample of the script as it is: the first that were counted
  bool tells_padding_ = false;  // for these it is known which are padding
};

}  // namespace fullbore::tune
