// What evaluations keep of the model's outputs until they are over: the hook's fact `kept_outputs`, and of the recorded
// passes, what follows them.
#pragma once

#include <optional>
#include <string>

#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

struct KeptOutputs {
  double bytes = 0;      // at the end of the evaluation that kept most
  double on_device = 0;  // of them
  double passes = 0;     // of that evaluation
  std::string shape;     // of what a pass returns: "8 x 64 x 4,000, float32"
  std::string by;        // the library whose loop evaluates, "transformers"; empty where that is not known
  // As parts of the validations' time: what follows a pass and is no part of the next one; of that, what it takes more
  // than where little was kept yet, as where all is copied for each new output; and beside that time, what follows the
  // last pass. 0 where that is not known.
  double between = 0, growing = 0, after = 0;
};

// Nothing where no evaluation was seen to keep them.
std::optional<KeptOutputs> KeptOutputsOf(const View& view);

// Of a finding about validations: what they keep. Where that takes time, keeping less is the first advice, and what the
// finding promised the second.
void SayWhatIsKept(const View& view, Finding& finding);

// Of a finding about the memory of a device, or of the host: advises to keep less, before all else, where what is kept is
// a good part of `capacity`, in bytes.
void AdviseToKeepLess(const View& view, bool on_device, std::optional<double> capacity, Finding& finding);

}  // namespace fullbore::diagnose
