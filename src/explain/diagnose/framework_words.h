// Advice about the input in the words of the framework and library that the script uses.
#pragma once

#include <string>
#include <vector>

#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Where batches can be prepared beside the training: "a Dataset (or an IterableDataset) behind
// DataLoader(num_workers=...)" for PyTorch.
std::string BesideTheTraining(const View& view);

struct LoaderAdvice {
  std::string cause;   // "serial-map", or empty
  std::string why;     // ends the sentence "Training waits for data 40 % of the time"; may be empty
  std::string change;  // in code; may be empty
  std::vector<std::string> fix;
};

// What can be changed in a loader of another library than torch's, of which only the waits and what it says of itself
// are known: tf.data, Keras, grain. Without fixes for any other.
LoaderAdvice AdviceFor(const View& view, const record::Loader& loader);

}  // namespace fullbore::diagnose
