#include "tune/proof/claim.h"

#include <fmt/format.h>

namespace fullbore::tune {

namespace {

std::optional<bool> SameLosses(const std::optional<LossDifference>& losses) {
  if (!losses || losses->steps == 0 || losses->IsNoise()) return std::nullopt;
  return losses->IsSame();
}

std::string WhyNotSame(const std::optional<LossDifference>& losses) {
  if (!losses || losses->steps == 0)
    return "faster, but the losses of both were not seen, so it is not shown that they compute the same";
  if (losses->IsNoise())
    return "faster, but the losses of a command differ from its own: set a seed, and compare again";
  return "faster, but it does not compute the same: " + ToText(*losses);
}

}  // namespace

Claim ClaimOf(const Contest& contest) {
  const auto losses = contest.losses();
  Claim claim{false, SameLosses(losses), ""};
  if (contest.ending == Ending::kFailed)
    claim.why = "not compared: a command could not be measured";
  else if (contest.standing() == Standing::kSlower)
    claim.why = "the candidate is slower";
  else if (contest.standing() == Standing::kNotProven)
    claim.why = "no gain is proven";
  else if (claim.same_losses != true)
    claim.why = WhyNotSame(losses);
  else
    claim = {true, true,
             fmt::format("faster, {}, with the same losses", GainText(*contest.proof.gain(), " at 95 %"))};
  return claim;
}

nlohmann::ordered_json ToJson(const Claim& claim) {
  return {{"holds", claim.holds}, {"same_losses", OrNull(claim.same_losses)}, {"why", claim.why}};
}

}  // namespace fullbore::tune
