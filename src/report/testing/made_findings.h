// Findings of the made-up runs (samples.h).
#pragma once

#include <string>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::report::testing {

diagnose::Finding FindingOf(std::string id, diagnose::Severity severity, double share, std::string title);
diagnose::Finding TooFewWorkers(const record::Stage& stage);
diagnose::Finding NoTensorCores();
diagnose::Finding PageableCopies();

}  // namespace fullbore::report::testing
