#include "explain/ingest/engine_steps.h"

#include "base/text.h"

namespace fullbore::ingest {

using record::ServingPhase;

namespace {

constexpr std::string_view kVllm = "vLLM", kSglang = "SGLang", kAtom = "ATOM", kXdit = "xDiT";

// The number that begins the text; -1 for none.
int64_t LeadingNumber(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  return ParseInt(text.substr(0, digits)).value_or(-1);
}

// What follows `key` in "bs=16 toks=4096]"; -1 where it is not there. A key is a word of its own.
int64_t NumberAfter(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const bool word = at == 0 || text[at - 1] == ' ' || text[at - 1] == '[';
    if (word) return LeadingNumber(text.substr(at + key.size()));
  }
  return -1;
}

// "step[EXTEND bs=2 toks=4096]", "step[DECODE bs=16]", "step[MIXED bs=2 c=1 g=1 c_sq=5 ... g_sq=1 ...]".
std::optional<EngineStep> OfSglang(std::string_view mode) {
  EngineStep step{kSglang};
  if (mode.starts_with("EXTEND ") || mode.starts_with("SPLIT_PREFILL ")) {
    step.phase = ServingPhase::kPrefill;
    step.tokens = NumberAfter(mode, "toks=");
  } else if (mode.starts_with("DECODE ")) {
    step.phase = ServingPhase::kDecode;
    step.tokens = NumberAfter(mode, "bs=");  // one for each request
  } else if (mode.starts_with("MIXED ")) {
    step.phase = ServingPhase::kMixed;
    const int64_t read = NumberAfter(mode, "c_sq="), generated = NumberAfter(mode, "g_sq=");
    if (read >= 0 && generated >= 0) step.tokens = read + generated;
  } else if (mode.starts_with("TARGET_VERIFY ") || mode.starts_with("VERIFY ") ||
             mode.starts_with("DRAFT_EXTEND")) {
    step.phase = ServingPhase::kDecode;  // how many of the guessed tokens stay is not known
  } else if (mode.find("bs=") == std::string_view::npos) {
    return std::nullopt;
  }
  return step;
}

// The requests and tokens of "2(512)" or, with its settings for a roofline, "2(sq512sk900...)".
struct Requests {
  int64_t count = -1, tokens = -1;
  explicit Requests(std::string_view text) {
    count = LeadingNumber(text);
    const size_t open = text.find('(');
    if (open == std::string_view::npos) return;
    std::string_view inside = text.substr(open + 1);
    if (inside.starts_with("sq")) inside.remove_prefix(2);
    tokens = LeadingNumber(inside);
  }
};

ServingPhase PhaseOf(int64_t read, int64_t generate) {
  if (read > 0 && generate > 0) return ServingPhase::kMixed;
  return read > 0 ? ServingPhase::kPrefill : generate > 0 ? ServingPhase::kDecode : ServingPhase::kUnknown;
}

// "execute_context_2(512)_generation_14(14)", "execute_7_context_..."; before 0.12 "execute_new_1_cached_15", in which
// a request counts as cached from its second iteration on.
std::optional<EngineStep> OfVllm(std::string_view name) {
  constexpr std::string_view kContext = "context_", kGeneration = "_generation_", kNew = "execute_new_",
                             kCached = "_cached_";
  if (name.starts_with(kNew)) {
    const size_t cached = name.find(kCached);
    if (cached == std::string_view::npos) return std::nullopt;
    return EngineStep{kVllm, PhaseOf(LeadingNumber(name.substr(kNew.size())),
                                     LeadingNumber(name.substr(cached + kCached.size())))};
  }
  const size_t context = name.find(kContext), generation = name.find(kGeneration);
  if (context == std::string_view::npos || generation == std::string_view::npos) return std::nullopt;
  const Requests read(name.substr(context + kContext.size())),
      made(name.substr(generation + kGeneration.size()));
  if (read.count < 0 || made.count < 0) return std::nullopt;
  EngineStep step{kVllm, PhaseOf(read.count, made.count)};
  const bool known = (read.count == 0 || read.tokens >= 0) && (made.count == 0 || made.tokens >= 0);
  if (known) step.tokens = (read.count > 0 ? read.tokens : 0) + (made.count > 0 ? made.tokens : 0);
  return step;
}

}  // namespace

std::optional<EngineStep> EngineStepOf(std::string_view name) {
  constexpr std::string_view kStep = "step[";
  if (name.starts_with(kStep) && name.ends_with(']')) return OfSglang(name.substr(kStep.size()));
  if (name.starts_with("execute_")) return OfVllm(name);
  if (name == "gpu_model_runner: forward" || name == "v2_gpu_model_runner: forward") return EngineStep{kVllm};
  if (name.starts_with("prefill[bs="))
    return EngineStep{kAtom, ServingPhase::kPrefill, NumberAfter(name.substr(7), "tok=")};
  if (name.starts_with("decode[bs="))
    return EngineStep{kAtom, ServingPhase::kDecode, NumberAfter(name.substr(6), "bs=")};
  return std::nullopt;
}

std::optional<EngineStep> EngineStepOfFrame(std::string_view frame) {
  const auto has = [&](std::string_view part) { return frame.find(part) != std::string_view::npos; };
  if (frame.ends_with(": execute_model") && has("vllm/") && has("model_runner.py(")) return EngineStep{kVllm};
  if (frame.ends_with(": run_batch") && has("sglang/srt/") && has("scheduler.py("))
    return EngineStep{kSglang};
  return std::nullopt;
}

std::string_view EngineOfFrame(std::string_view frame) {
  const auto of_package = [&](std::string_view package) {
    const size_t at = frame.find(package);
    return at == 0 || (at != std::string_view::npos && frame[at - 1] == '/');
  };
  if (of_package("vllm/v1/") || of_package("vllm/worker/")) return kVllm;
  if (of_package("sglang/srt/")) return kSglang;
  return of_package("xfuser/model_executor/") ? kXdit : std::string_view{};
}

}  // namespace fullbore::ingest
