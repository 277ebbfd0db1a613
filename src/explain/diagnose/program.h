// What the program of a rank is made with, as far as facts tell: whose words its advice has to use, and which advice
// does not fit it at all.
#pragma once

#include <string>

#include "record/recording.h"

namespace fullbore::diagnose {

struct Program {
  std::string framework = "torch";  // "torch", "keras", "tensorflow", "jax"
  std::string optimizer;            // its class, "AdamW"; empty where unknown
  std::string wrapper;              // "DistributedDataParallel", "fully_shard"; empty where unknown
  std::string engine;               // that serves a model: "vLLM"; empty for a training
  bool compiled = false;            // torch.compile made kernels of it, or XLA does

  bool torch() const { return framework == "torch"; }
};
Program ProgramOf(const record::RankInfo& info);

// A change in code, and the sentence that advises it; both empty where the program cannot make it, or has.
struct Words {
  std::string change, fix;
};
Words ToCompile(const Program& program);
Words ToUseGraphs(const Program& program);         // of launches
Words ToFuseTheOptimizer(const Program& program);  // under its own name

// "torch.autocast(\"cuda\", torch.bfloat16)" in the framework's own words, for a device as `torch.device` calls it.
// `type` is "bfloat16" or "float16".
std::string ToUseShortType(const Program& program, const std::string& type, const std::string& device);

}  // namespace fullbore::diagnose
