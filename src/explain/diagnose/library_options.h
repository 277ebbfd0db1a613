// What a library that owns the training loop calls the setting that a finding is about.
#pragma once

#include <string>

#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// "transformers runs this loop: TrainingArguments(logging_steps=...)" for the cause of a finding ("logging",
// "data-preparation", "own-loader"); empty where the library or its setting is not known.
std::string OptionOf(const std::string& library, const std::string& cause);

// The library that runs the loop, where the training thread was seen most often in `share`; empty where that
// is the user's own line.
std::string LibraryIn(const RankView& rank, record::Share share);

}  // namespace fullbore::diagnose
