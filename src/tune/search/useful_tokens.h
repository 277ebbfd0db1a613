// The laboratory of a search for the most useful tokens a second: tokens that the model computes, without padding.
//
// It wraps another laboratory, whose rates count samples, and multiplies the rate of each trial by the useful tokens
// per sample in the trial's recording. These are counted in a few batches only, so between trials of the same samples
// they differ by chance. If they are within that of the script as it is, they are taken to be equal, so that an answer
// in tokens is as exact as one in samples; a placeholder that packs or truncates samples gets a count of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "explain/diagnose/tokens.h"
#include "record/recording.h"
#include "tune/search/search.h"

namespace fullbore::tune {

// From its recording; nothing if the model looks up no integers.
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
  // Per sample of this trial, or why they are unknown.
  Result<double> TokensOf(const Trial& trial);

  Laboratory& inner_;
  Count count_;
  std::optional<double> own_;   // tokens per sample of the script as it is: the first count
  bool tells_padding_ = false;  // whether it is known which of these are padding
};

}  // namespace fullbore::tune
