// What a run was set up with that decides how fast it is, as facts with one spelling whoever recorded them: the loader that
// feeds the training beside what the hook noted. Comparisons tell by them which change was made.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// "loader.num_workers" -> "4", "loader.pin_memory" -> "true", ...: JSON texts. Empty where no loader was seen.
std::map<std::string, std::string> LoaderFacts(const record::RankInfo& rank);

// Whether two runs that differ in this fact do not do the same work in the same way: loader, batch, threads, precision,
// device. Not what follows from the run, and not what says nothing of its speed.
bool DecidesSpeed(std::string_view fact);

// The facts that this change in code would leave behind: "DataLoader(num_workers=4)" -> {"loader.num_workers": "4"},
// "OMP_NUM_THREADS=1" -> {"omp_num_threads": "1"}. Empty where it leaves none.
std::map<std::string, std::string> FactsOfChange(std::string_view change);

}  // namespace fullbore::diagnose
