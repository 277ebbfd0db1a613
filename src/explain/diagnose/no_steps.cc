#include "explain/diagnose/no_steps.h"

namespace fullbore::diagnose {
void SayWhyNoSteps(const record::Recording& recording, const record::Stage& stage, Diagnosis& diagnosis) {
  if (recording.source != "kineto" && recording.source != "nsys") {
    diagnosis.not_judged.push_back({"training", "no optimizer step was seen",
                                    "PyTorch training whose Python inherits the environment (not python -I, "
                                    "-E or -S); in any other loop, "
                                    "fullbore.step() and for batch in fullbore.watch(loader)"});
    return;
  }
  std::string held = "\"\"";
  for (const record::RankInfo& rank : stage.ranks) {
    if (const auto fact = rank.facts.find("trace_holds"); fact != rank.facts.end()) held = fact->second;
  }
  diagnosis.facts["trace_holds"] = held;
  if (held == "\"\"") {
    diagnosis.not_judged.push_back(
        {"the trace", "nothing was recorded in it",
         "a profiler that is active while iterations run: with a schedule, prof.step() after each, until the "
         "active steps are over"});
    return;
  }
  diagnosis.not_judged.push_back(
      {"the trace", "it marks no steps and holds no device activity",
       "prof.step() after each iteration, and the device among the profiler's activities "
       "(ProfilerActivity.CUDA) if there is one; fullbore run -- COMMAND records without either"});
}

}  // namespace fullbore::diagnose
