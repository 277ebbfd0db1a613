// oversized-batch: a smaller batch would reach the same throughput. That takes runs with several batch sizes,
// so a single recording leaves it open.
#include "explain/diagnose/device_memory.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

std::optional<Finding> JudgeOversizedBatch(const View& view, Diagnosis& diagnosis) {
  if (!FilledDeviceMemory(view)) return std::nullopt;
  diagnosis.not_judged.push_back({"oversized-batch", "one batch size was measured",
                                  "fullbore compare on runs with different batch sizes"});
  return std::nullopt;
}

}  // namespace fullbore::diagnose
