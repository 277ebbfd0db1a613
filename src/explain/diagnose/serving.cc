#include "explain/diagnose/serving.h"

#include <array>

namespace fullbore::diagnose {

bool FillServing(const View& view, Diagnosis& diagnosis) {
  constexpr std::array<const char*, record::kServingPhaseCount> kNames = {"", "prefill", "decode", "mixed"};
  const record::Noticed& noticed = view.lead().info->noticed;
  if (noticed.engine.empty()) return false;
  diagnosis.engine = noticed.engine;
  double all_ns = 0;
  for (const record::ServedPhase& phase : noticed.served) all_ns += static_cast<double>(phase.ns);
  for (const record::ServedPhase& phase : noticed.served) {
    const auto ns = static_cast<double>(phase.ns);
    ServedPhase served;
    served.phase = kNames[static_cast<size_t>(phase.phase)];
    served.iterations = phase.iterations;
    served.share = all_ns > 0 ? ns / all_ns : 0;
    if (phase.tokens && ns > 0) {
      served.tokens_per_s = static_cast<double>(*phase.tokens) / (ns / 1e9);
      served.tokens_per_iteration =
          static_cast<double>(*phase.tokens) / static_cast<double>(phase.iterations);
    }
    diagnosis.served.push_back(served);
  }
  return true;
}

}  // namespace fullbore::diagnose
