// oversized-batch: throughput that a smaller batch reaches as well. It takes runs with several batch sizes to
// see it: from one recording it is left open.
#include "explain/diagnose/device_memory.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

std::optional<Finding> JudgeOversizedBatch(const View& view, Diagnosis& diagnosis) {
  if (!FilledDeviceMemory(view)) return std::nullopt;
  diagnosis.not_judged.push_back(
      {"oversized-batch", "one batch size was measured", "fullbore compare of runs with other batch sizes"});
  return std::nullopt;
}

}  // namespace fullbore::diagnose
