// What a library that owns the training loop calls the setting that a finding is about.
#pragma once

#include <string>

namespace fullbore::diagnose {

// "transformers runs this loop: TrainingArguments(logging_steps=...)" for the cause of a finding ("logging",
// "data-preparation", "own-loader"); empty where the library or its setting is not known.
std::string OptionOf(const std::string& library, const std::string& cause);

}  // namespace fullbore::diagnose
