// What changes to the recorded steps would gain, by running the graph of those steps again (explain/replay).
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"
#include "explain/replay/predict.h"

namespace fullbore::diagnose {

// The graph of the rank's steps; null where there is none, or where its replay is too far from what was
// recorded to predict anything.
const record::StepGraph* ReplayableGraph(const RankView& rank);

// How many times as fast the steps become with these changes, which are named as in --what-if; nothing
// without a graph. For another rank's steps than the judged one's: a finding about those quotes (below).
std::optional<Speedup> GainOf(const RankView& rank, const std::vector<const replay::Change*>& changes);

// The gain of the change with this id becomes the finding's, with what it costs and `method`. False where it cannot be
// made or there is no graph: then nothing is changed.
bool Quote(const RankView& rank, std::string_view id, std::string method, Finding& finding);

// The part of the step that the change would take away; 0 where it cannot be made or would not.
double SavedBy(const RankView& rank, std::string_view change);

// Of these changes the one that is most sure to gain; of equals, the one that costs least. Its gain becomes the finding's, and what it takes in code
// comes first in `fix` and becomes `change`. The advice of the others that gain follows. False if none of
// them is possible and gains anything: then nothing is changed.
bool AdviseBest(const RankView& rank, std::initializer_list<std::string_view> changes, Finding& finding);

// The replay as the report shows it, without what the recording does not allow to predict; nothing without a graph.
// `what_if` are the changes that a user asked for. What the findings quote stands in it with the same number, and no
// change whose gain they took back.
std::optional<ReplayReport> ReportOf(const RankView& rank, const std::vector<const replay::Change*>& what_if,
                                     const fitness::Fitness& fitness, const std::vector<Finding>& findings);

}  // namespace fullbore::diagnose
