// In what one machine of a run on several differs from the others: in the means of its series while its ranks trained,
// and in what it is made of.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::diagnose {

class NodeDifferences {
 public:
  explicit NodeDifferences(const std::vector<record::Node>& nodes);

  // What explains slowness first (a clock, heat, a power limit, what other programs take), then what only goes with
  // it, then facts. Nothing among fewer than three machines: with two, either may be the odd one.
  std::vector<Difference> Of(size_t node) const;

 private:
  std::vector<std::vector<std::optional<double>>> values_;  // by row of the table, by node
  std::vector<std::map<std::string, std::string>> facts_;
  std::map<std::string, std::string> usual_;  // facts that four of five machines share
};

}  // namespace fullbore::diagnose
