// Made-up runs for goldens, screenshots and tests: the same bytes every time. The figures of a sample are
// consistent with each other (shares, throughput, series), as in a real run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::report::testing {

struct Sample {
  std::string name;
  diagnose::Diagnosis diagnosis;
  record::Recording recording;
};

Sample InputBound();    // one H200, too few workers, 1,778 steps
Sample Healthy();       // two CPU cores, a model that uses them
Sample Straggler();     // eight ranks, one of them late
Sample NoTraining();    // a program that never trains
Sample OutOfMemory();   // killed for memory after a few steps
Sample TwoStages();     // prepare, then train; the second is judged
Sample OneStepTrace();  // somebody's trace of 41 ms, with a message about the whole of it
Sample NotJudged();     // a trace of launches whose kernels were not recorded
Sample HostileTexts();  // markup, escapes and broken UTF-8 wherever a user's text can be

std::vector<Sample> AllSamples();

}  // namespace fullbore::report::testing
