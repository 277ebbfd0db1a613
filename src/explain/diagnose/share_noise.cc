#include "explain/diagnose/share_noise.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "explain/diagnose/between_starts.h"
#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/statistics.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

namespace {

double ShareIn(const Diagnosis& diagnosis, const std::string& name) {
  const auto share = diagnosis.shares.find(name);
  return share == diagnosis.shares.end() ? 0 : share->second;
}

}  // namespace

std::optional<ShareNoise> ShareNoiseOf(const record::Recording& recording, const std::string& stage) {
  const record::Stage* judged = JudgedStage(recording, stage);
  if (!judged) return std::nullopt;
  const View view(recording, *judged);
  if (!view.HasSteps()) return std::nullopt;
  std::vector<double> wall_ns;
  for (const record::Step* step : view.lead().steady) wall_ns.push_back(static_cast<double>(step->wall_ns));
  ShareNoise noise;
  for (size_t i = 0; i < record::kShareCount; ++i) {
    std::vector<double> share_ns;
    for (const record::Step* step : view.lead().steady)
      share_ns.push_back(static_cast<double>(step->share_ns[i]));
    const auto interval = RatioInterval(share_ns, wall_ns);
    if (!interval) return std::nullopt;
    noise[std::string(Name(static_cast<record::Share>(i)))] = interval->high - interval->mean;
  }
  return noise;
}

ShareMoves ShareMovesOf(const Diagnosis& before, const std::optional<ShareNoise>& noise_before,
                        const Diagnosis& after, const std::optional<ShareNoise>& noise_after) {
  ShareMoves moves;
  if (!noise_before || !noise_after) return moves;
  for (const auto& [name, noise] : *noise_before) {
    const double from = ShareIn(before, name), to = ShareIn(after, name);
    // Where what is in the share takes a per cent longer, the share grows by this part of it.
    const double part = std::max(from * (1 - from), to * (1 - to));
    const double half = std::hypot(noise, noise_after->at(name), part * BetweenStarts(before, after));
    const double by = to - from;
    moves[name] = {by - half, by + half};
  }
  return moves;
}

}  // namespace fullbore::diagnose
