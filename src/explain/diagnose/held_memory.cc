#include "explain/diagnose/held_memory.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "record/json_text.h"

namespace fullbore::diagnose {

using nlohmann::json;

namespace {

constexpr double kMostBytes = 0x1p50;  // facts come from the user's process
constexpr size_t kMostPeaks = 64, kMostParts = 64;

std::optional<double> AmountOf(const json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto amount = value.get<double>();
  return amount >= 0 && amount <= kMostBytes ? std::optional(amount) : std::nullopt;
}

std::optional<double> AmountIn(const json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() ? std::nullopt : AmountOf(*at);
}

BytesByName PartsOf(const json& object) {
  BytesByName parts;
  if (!object.is_object()) return parts;
  for (const auto& [name, value] : object.items()) {
    if (const auto bytes = AmountOf(value); bytes && parts.size() < kMostParts) parts[name] = *bytes;
  }
  return parts;
}

BytesByName PartsIn(const json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() ? BytesByName() : PartsOf(*at);
}

std::map<std::string, BytesByName> StatesIn(const json& object) {
  std::map<std::string, BytesByName> states;
  const auto at = object.find("states");
  if (at == object.end() || !at->is_object()) return states;
  for (const auto& [name, types] : at->items()) {
    if (states.size() < kMostParts) states[name] = PartsOf(types);
  }
  return states;
}

template <size_t kCount>
std::optional<std::array<double, kCount>> Row(const json& list) {
  std::array<double, kCount> row{};
  if (!list.is_array() || list.size() != kCount) return std::nullopt;
  for (size_t i = 0; i < kCount; ++i) {
    const auto amount = AmountOf(list[i]);
    if (!amount) return std::nullopt;
    row[i] = *amount;
  }
  return row;
}

std::vector<ReachedPeak> PeaksIn(const json& object) {
  std::vector<ReachedPeak> peaks;
  const auto at = object.find("peaks");
  if (at == object.end() || !at->is_array()) return peaks;
  for (const json& one : *at) {
    const auto row = Row<5>(one);  // rows, width, elements, bytes, step
    if (!row || (*row)[0] < 1 || (*row)[2] < 1 || peaks.size() == kMostPeaks) continue;
    peaks.push_back({{(*row)[0], (*row)[1], (*row)[2]}, (*row)[3], (*row)[4] == 0});
  }
  return peaks;
}

std::optional<BatchSize> UnderWayIn(const json& object) {
  const auto at = object.find("under_way");
  const auto row = at == object.end() ? std::nullopt : Row<3>(*at);
  if (!row || (*row)[0] < 1 || (*row)[2] < 1) return std::nullopt;
  return BatchSize{(*row)[0], (*row)[1], (*row)[2]};
}

}  // namespace

double SumOf(const BytesByName& parts) {
  double sum = 0;
  for (const auto& [name, bytes] : parts) sum += bytes;
  return sum;
}

double HeldMemory::States() const {
  double sum = 0;
  for (const auto& [name, types] : states) sum += SumOf(types);
  return sum;
}

double HeldMemory::Peak() const {
  double most = 0;
  for (const ReachedPeak& peak : peaks) most = std::max(most, peak.bytes);
  return most;
}

std::optional<HeldMemory> HeldMemoryOf(const record::RankInfo& rank) {
  const auto fact = rank.facts.find("memory");
  const json said = fact == rank.facts.end() ? json() : record::ParseJson(fact->second);
  if (!said.is_object()) return std::nullopt;
  HeldMemory held;
  held.rank = rank.rank;
  held.weights = PartsIn(said, "weights");
  held.gradients = PartsIn(said, "gradients");
  held.states = StatesIn(said);
  held.peaks = PeaksIn(said);
  held.under_way = UnderWayIn(said);
  held.reserved = AmountIn(said, "reserved").value_or(0);
  held.total = AmountIn(said, "total");
  held.outside = AmountIn(said, "outside");
  return held;
}

}  // namespace fullbore::diagnose
