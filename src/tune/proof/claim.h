// Whether somebody may claim that the candidate of a contest is faster: only where that is proven, and the losses of the
// first steps are the same. A program that computes something else is not a faster one.
#pragma once

#include <optional>
#include <string>

#include "tune/proof/contest.h"

namespace fullbore::tune {

struct Claim {
  bool holds = false;
  std::optional<bool> same_losses;  // nothing where it cannot be told
  std::string why;                  // a sentence
};

Claim ClaimOf(const Contest& contest);
nlohmann::ordered_json ToJson(const Claim& claim);

}  // namespace fullbore::tune
