#include "explain/diagnose/program.h"

#include <fmt/format.h>

#include "explain/replay/change/change.h"

namespace fullbore::diagnose {

namespace {

// A fact that is a text.
std::string TextOf(const record::RankInfo& info, const char* fact) {
  const auto at = info.facts.find(fact);
  if (at == info.facts.end()) return "";
  const std::string& json = at->second;
  return json.size() >= 2 && json.front() == '"' ? json.substr(1, json.size() - 2) : json;
}

bool IsTrue(const record::RankInfo& info, const char* fact) { return TextOf(info, fact) == "true"; }

}  // namespace

Program ProgramOf(const record::RankInfo& info) {
  Program program;
  if (const std::string framework = TextOf(info, "framework"); !framework.empty())
    program.framework = framework;
  program.optimizer = TextOf(info, "optimizer");
  program.wrapper = TextOf(info, "distributed");
  program.engine = info.noticed.engine;
  program.compiled = IsTrue(info, "compiled") || IsTrue(info, "jit_compile");
  return program;
}

// Sources: pytorch.org/docs (torch.compile), keras.io/api/models/model_training_apis, tensorflow.org/guide/function,
// docs.vllm.ai (engine arguments), docs.sglang.ai (server arguments).
Words ToCompile(const Program& program) {
  if (program.compiled) return {};
  if (program.engine == "vLLM")
    return {"", "without --enforce-eager, vLLM compiles the model and launches it as CUDA graphs"};
  if (program.engine == "SGLang") return {"--enable-torch-compile", "--enable-torch-compile: fewer kernels"};
  if (program.framework == "keras")
    return {"model.compile(jit_compile=True)",
            "model.compile(..., jit_compile=True): XLA makes fewer kernels"};
  if (program.framework == "tensorflow")
    return {"tf.function(jit_compile=True)",
            "tf.function(jit_compile=True) around the step: XLA makes fewer kernels"};
  if (program.framework == "jax") return {"", "jax.jit around the whole step: fewer kernels and less Python"};
  return {"torch.compile(model)", "torch.compile(model): fewer kernels, and less Python between them"};
}

Words ToUseGraphs(const Program& program) {
  if (program.engine == "vLLM") return ToCompile(program);
  if (program.engine == "SGLang")
    return {"", "without --disable-cuda-graph, SGLang launches its iterations as CUDA graphs"};
  if (!program.torch()) return {};
  return {"torch.compile(model, mode=\"reduce-overhead\")",
          program.compiled
              ? "mode=\"reduce-overhead\" in the script's torch.compile: CUDA graphs, in which many "
                "launches become one"
              : "CUDA graphs (torch.compile with mode=\"reduce-overhead\", or "
                "torch.cuda.make_graphed_callables): many launches become one"};
}

Words ToFuseTheOptimizer(const Program& program) {
  if (!program.torch() || !replay::HasFusedForm(program.optimizer)) return {};
  return {fmt::format("{}(..., fused=True)", program.optimizer),
          fmt::format("fused optimizer: torch.optim.{}(..., fused=True)", program.optimizer)};
}

// keras.io/api/mixed_precision, docs.jax.dev/en/latest/jax.numpy.html#dtypes; Keras scales the loss of float16 by
// itself, PyTorch and JAX leave it to the script.
std::string ToUseShortType(const Program& program, const std::string& type, const std::string& device) {
  const bool scaled = type == "float16";
  if (program.framework == "keras" || program.framework == "tensorflow")
    return fmt::format("{}.mixed_precision.set_global_policy(\"mixed_{}\")",
                       program.framework == "keras" ? "keras" : "tf.keras", type);
  if (program.framework == "jax")
    return fmt::format("dtype=jnp.{} in the model's layers{}", type, scaled ? ", with a scaled loss" : "");
  return fmt::format("torch.autocast(\"{}\", torch.{}){}", device, type, scaled ? " with a GradScaler" : "");
}

}  // namespace fullbore::diagnose
