#include "explain/diagnose/tokens.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "record/json_text.h"

namespace fullbore::diagnose {

using nlohmann::json;
using record::NumberIn;

namespace {

// transformers.trainer_pt_utils.get_length_grouped_indices.
constexpr int64_t kBatchesSorted = 50, kPartSorted = 4;

std::vector<double> Numbers(const json& object, const char* key) {
  std::vector<double> numbers;
  const auto at = object.find(key);
  if (at == object.end() || !at->is_array()) return numbers;
  for (const json& number : *at) {
    if (number.is_number()) numbers.push_back(number.get<double>());
  }
  return numbers;
}

Width WidthIn(const json& object, const char* key, double samples) {
  const std::vector<double> sums = Numbers(object, key);
  return sums.size() == 2 ? Width{sums[0] / samples, sums[1] / samples} : Width{};
}

json Said(const View& view) {
  const auto text = view.Fact("tokens");
  return text ? record::ParseJson(*text) : json();
}

double AtQuantile(const std::vector<double>& quantiles, double q) {
  const double place = q * static_cast<double>(quantiles.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, quantiles.size() - 1);
  return std::lerp(quantiles[below], quantiles[above], place - static_cast<double>(below));
}

}  // namespace

Width Tokens::Grouped(int64_t batches_sorted) const {
  Width width;  // each batch is as wide as the largest of its part of the lengths
  const auto parts = static_cast<double>(batches_sorted);
  for (int64_t part = 1; part <= batches_sorted; ++part) {
    const double length = AtQuantile(lengths, static_cast<double>(part) / parts);
    width.tokens += length / parts;
    width.squares += length * length / parts;
  }
  return width.tokens < longest.tokens ? width : longest;
}

Width Tokens::Packed() const {
  Width width{useful, 0};
  const auto parts = static_cast<double>(lengths.size() - 1);
  for (size_t part = 1; part < lengths.size(); ++part)
    width.squares += lengths[part - 1] * lengths[part] / parts;
  return width;
}

std::optional<Tokens> TokensOf(const View& view) {
  const json said = Said(view);
  if (!said.is_object()) return std::nullopt;
  Tokens tokens;
  tokens.batches = NumberIn(said, "batches");
  tokens.samples = NumberIn(said, "rows");
  tokens.useful = NumberIn(said, "useful") / tokens.samples;
  tokens.computed = WidthIn(said, "computed", tokens.samples);
  tokens.longest = WidthIn(said, "longest", tokens.samples);
  tokens.widths = std::llround(NumberIn(said, "widths"));
  tokens.lengths = Numbers(said, "lengths");
  const bool plausible = tokens.batches > 0 && tokens.samples > 0 && tokens.useful > 0 &&
                         tokens.useful <= tokens.longest.tokens &&
                         tokens.longest.tokens <= tokens.computed.tokens &&
                         tokens.longest.squares <= tokens.computed.squares && tokens.lengths.size() >= 2 &&
                         std::ranges::is_sorted(tokens.lengths);
  if (!plausible) return std::nullopt;
  if (said.contains("follows")) tokens.follows = std::clamp(NumberIn(said, "follows"), 0.0, 1.0);
  tokens.features = NumberIn(said, "features");
  const auto attends = said.find("attends");
  tokens.attends = attends != said.end() && attends->is_boolean() && attends->get<bool>();
  if (const auto told = said.find("told_by"); told != said.end() && told->is_string())
    tokens.told_by = told->get<std::string>();
  return tokens;
}

std::optional<SampleTokens> SampleTokensOf(const View& view) {
  const json said = Said(view);
  if (!said.is_object() || NumberIn(said, "follows") <= 0) return std::nullopt;
  const double samples = NumberIn(said, "rows");
  if (samples <= 0) return std::nullopt;
  const Width computed = WidthIn(said, "computed", samples);
  SampleTokens tokens{computed.tokens, std::nullopt, computed.squares};
  if (tokens.computed <= 0) return std::nullopt;
  if (const auto known = TokensOf(view)) tokens.useful = known->useful;
  return tokens;
}

bool AreOfTheSameSamples(double tokens, double others) {
  constexpr double kAnotherSample = 1.25;
  return std::max(tokens, others) <= kAnotherSample * std::min(tokens, others);
}

int64_t BatchesSorted(std::optional<int64_t> samples, double batch) {
  if (!samples || batch <= 0) return kBatchesSorted;
  const double part = static_cast<double>(*samples) / (batch * static_cast<double>(kPartSorted));
  return std::clamp(static_cast<int64_t>(part), int64_t{1}, kBatchesSorted);
}

}  // namespace fullbore::diagnose
