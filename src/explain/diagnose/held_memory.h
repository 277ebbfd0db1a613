// What a rank's device memory held, as the hook weighed it, and how high batches of different sizes raised it: the fact
// `memory` of docs/channel.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/recording.h"

namespace fullbore::diagnose {

// Of what the model is called with.
struct BatchSize {
  double rows = 0;
  double width = 0;  // tokens of a row; 0 where it is no matrix of tokens
  double elements = 0;

  bool operator==(const BatchSize&) const = default;
  BatchSize WithRows(double other) const { return {other, width, elements / rows * other}; }
  BatchSize WithWidth(double other) const { return {rows, other, elements / width * other}; }
};

struct ReachedPeak {
  BatchSize batch;
  double bytes = 0;    // in the program's tensors
  bool first = false;  // in the first step, before the optimizer had made its states
};

using BytesByName = std::map<std::string, double>;
double SumOf(const BytesByName& parts);

struct HeldMemory {
  int rank = 0;
  BytesByName weights, gradients;             // by the type of their numbers: "bfloat16"
  std::map<std::string, BytesByName> states;  // of optimizers, by name: "exp_avg"
  std::vector<ReachedPeak> peaks;             // of ever larger batches
  std::optional<BatchSize> under_way;         // larger than all before, and not known to have come to its end
  double reserved = 0;                        // the most that PyTorch had of the driver
  std::optional<double> total, outside;       // of the device; used of it outside of PyTorch, by whomever

  double States() const;
  double Peak() const;
};

std::optional<HeldMemory> HeldMemoryOf(const record::RankInfo& rank);

}  // namespace fullbore::diagnose
