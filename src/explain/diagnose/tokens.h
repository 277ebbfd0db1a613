// The tokens of a training's batches, as the hook looked at some of them: how many are padding, and how many would be left
// if samples were put together in another way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// What a sample takes in its batch, on average: tokens, and the square of them, which attention computes.
struct Width {
  double tokens = 0, squares = 0;
};

struct Tokens {
  double batches = 0, samples = 0;  // that were looked at
  double useful = 0;                // tokens of a sample
  Width computed;                   // padding and all
  Width longest;                    // each batch padded to its own longest sample
  int64_t widths = 1;               // of batches: how many different ones
  std::vector<double> lengths;  // useful tokens of samples: quantiles at equal distances, the smallest first
  std::optional<double> follows;  // the part of the model's work that is done for each token, 0..1
  bool attends = false;           // a part of the model is called an attention
  double features = 0;            // that a token is looked up as; 0 where unknown
  std::string told_by;            // "attention_mask", "padding_idx" or "ends": what says which are padding

  double Padding() const { return 1 - useful / computed.tokens; }  // of the computed ones
  // Where samples of like length come together: so many batches are sorted at a time.
  Width Grouped(int64_t batches_sorted) const;
  Width Packed() const;  // nothing is padded
};

// Nothing where no batch was looked at, nothing tells which tokens are padding, or what was said is not plausible.
std::optional<Tokens> TokensOf(const View& view);

// Tokens of a sample, on average.
struct SampleTokens {
  double computed = 0;           // padding and all
  std::optional<double> useful;  // where it is known which are padding
  double squares = 0;            // of the computed ones, as attention sees them
};

// Nothing where the model is not known to compute anything for each token.
std::optional<SampleTokens> SampleTokensOf(const View& view);

// Whether two counts of the useful tokens of a sample differ by no more than the drawing of some dozens of batches makes.
bool AreOfTheSameSamples(double tokens, double others);

// How many batches are sorted at a time by Transformers' group_by_length: fifty, and of a small dataset a quarter of all.
int64_t BatchesSorted(std::optional<int64_t> samples, double batch);

}  // namespace fullbore::diagnose
