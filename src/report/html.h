// A diagnosis and its recording as one HTML file: no network, opens from disk, light and dark, on paper and
// on a phone. Texts of the recording reach the page as JSON and from there as text nodes only.
#pragma once

#include <string>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::report {

// The charts show the stage that was judged (diagnose::JudgedStage). Costs
// a few hundred kilobytes however long the run was: series and step windows are thinned out to what a screen
// can show.
std::string ToHtml(const diagnose::Diagnosis& diagnosis, const record::Recording& recording);

}  // namespace fullbore::report
