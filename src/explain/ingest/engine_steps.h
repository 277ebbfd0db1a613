// How engines that serve models mark what they do in a trace: vLLM and SGLang put a range around each iteration of
// their scheduler, whose name says whether it reads prompts (prefill), generates (decode), or both, and how many
// tokens. Sources: vllm/v1/worker/gpu_worker.py (annotate_profile), gpu_model_runner.py;
// sglang/srt/utils/profile_utils.py (build_step_span_name); ROCm/ATOM.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "record/noticed.h"

namespace fullbore::ingest {

struct EngineStep {
  std::string_view engine;  // "vLLM"
  record::ServingPhase phase = record::ServingPhase::kUnknown;
  int64_t tokens = -1;  // that the iteration computes; -1 where its name does not say
};

// "step[DECODE bs=16]", "execute_context_2(512)_generation_14(14)"; nothing for any other name.
std::optional<EngineStep> EngineStepOf(std::string_view name);

// The engine's own function around an iteration, where the trace has stacks:
// "vllm/v1/worker/gpu_model_runner.py(2345): execute_model".
std::optional<EngineStep> EngineStepOfFrame(std::string_view frame);

// The engine of whose code a Python function is part; empty for any other.
std::string_view EngineOfFrame(std::string_view frame);

}  // namespace fullbore::ingest
