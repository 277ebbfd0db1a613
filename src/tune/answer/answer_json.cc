#include "tune/answer/answer_json.h"

#include <algorithm>

#include "base/secrets.h"
#include "tune/trial/losses.h"

namespace fullbore::tune {

namespace {

using nlohmann::ordered_json;

ordered_json ProofJson(const Proof& proof) {
  const auto gain = proof.gain();
  return {{"settings", ToJson(proof.settings)},
          {"pairs", proof.pairs.size()},
          {"in_slices", proof.pairs_in_slices()},
          {"gain", gain ? ToJson(*gain) : ordered_json()},
          {"verdict", Name(proof.verdict)}};
}

ordered_json LossesJson(const std::vector<Trial>& trials) {
  ordered_json array = ordered_json::array();
  for (const LossDifference& each : CompareLosses(trials)) array.push_back(ToJson(each));
  return array;
}

}  // namespace

ordered_json AnswerJson(const Answer& answer, const AnswerContext& context) {
  ordered_json json = {{"schema", "fullbore.tune/1"}, {"command", MaskSecrets(context.command)}};
  json["baseline"] = answer.baseline ? ToJson(*answer.baseline) : ordered_json();
  json["trials"] = ordered_json::array();
  for (const Trial& trial : answer.trials) json["trials"].push_back(ToJson(trial));
  json["recommended"] = nullptr;
  if (answer.recommended) {
    const Trial& chosen = *answer.recommended;
    ordered_json& said = json["recommended"] = {{"settings", ToJson(chosen.settings)}};
    AddRate(chosen, said);
    said["gain"] = ToJson(answer.gain);
    said["changes_results"] = ChangesOfResults(answer);
    said["patch"] = context.patch.empty() ? ordered_json() : ordered_json(context.patch);
    said["by_hand"] = context.by_hand;
  }
  json["proofs"] = ordered_json::array();
  for (const Proof& proof : answer.proofs) json["proofs"].push_back(ProofJson(proof));
  json["unproven"] = answer.unproven ? ordered_json(ToJson(answer.unproven->settings)) : ordered_json();
  json["grounds"] = Grounds(answer);
  json["larger_batch"] = answer.larger_batch ? ProofJson(answer.larger_batch->proof) : ordered_json();
  json["larger_batch_grounds"] = OfLargerBatches(answer);
  json["unlike_the_run"] =
      context.unlike_the_run.empty() ? ordered_json() : ordered_json(context.unlike_the_run);
  json["reason"] = context.reason.empty() ? ordered_json() : ordered_json(context.reason);
  json["losses"] = LossesJson(answer.trials);
  json["pareto"] = ordered_json::array();
  for (const Trial& trial : answer.pareto) json["pareto"].push_back(ToJson(trial));
  return json;
}

}  // namespace fullbore::tune
