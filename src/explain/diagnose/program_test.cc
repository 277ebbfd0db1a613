#include "explain/diagnose/program.h"

#include <gmock/gmock.h>

namespace fullbore::diagnose {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Program With(const char* framework, const char* optimizer = "") {
  Program program;
  program.framework = framework;
  program.optimizer = optimizer;
  return program;
}

TEST(ProgramWordsTest, AreToldByTheFactsOfARank) {
  record::RankInfo info;
  EXPECT_TRUE(ProgramOf(info).torch());
  info.facts = {{"framework", "\"keras\""}, {"optimizer", "\"SGD\""}, {"jit_compile", "true"}};
  info.noticed.engine = "vLLM";
  const Program program = ProgramOf(info);
  EXPECT_EQ(program.framework, "keras");
  EXPECT_EQ(program.optimizer, "SGD");
  EXPECT_EQ(program.engine, "vLLM");
  EXPECT_TRUE(program.compiled);
}

TEST(ProgramWordsTest, TheOptimizerIsFusedUnderItsOwnName) {
  EXPECT_EQ(ToFuseTheOptimizer(With("torch", "SGD")).change, "SGD(..., fused=True)");
  EXPECT_EQ(ToFuseTheOptimizer(With("torch", "AdamW")).change, "AdamW(..., fused=True)");
}

TEST(ProgramWordsTest, AnOptimizerWithoutAFusedFormOrAnUnknownOneIsNotFused) {
  for (const char* optimizer : {"RMSprop", "LBFGS", "Lion", "Adagrad", "Adam8bit", ""})
    EXPECT_EQ(ToFuseTheOptimizer(With("torch", optimizer)).fix, "") << optimizer;
  EXPECT_EQ(ToFuseTheOptimizer(With("keras", "Adam")).fix, "");
}

TEST(ProgramWordsTest, ACompiledProgramIsNotToldToCompile) {
  Program program = With("torch");
  EXPECT_EQ(ToCompile(program).change, "torch.compile(model)");
  program.compiled = true;
  EXPECT_EQ(ToCompile(program).fix, "");
  EXPECT_THAT(ToUseGraphs(program).fix, HasSubstr("the script's torch.compile"));
}

TEST(ProgramWordsTest, EachFrameworkHasItsOwnWords) {
  EXPECT_THAT(ToCompile(With("keras")).fix, HasSubstr("jit_compile=True"));
  EXPECT_THAT(ToCompile(With("tensorflow")).fix, HasSubstr("tf.function"));
  EXPECT_THAT(ToCompile(With("jax")).fix, HasSubstr("jax.jit"));
  EXPECT_EQ(ToUseGraphs(With("jax")).fix, "");
  EXPECT_EQ(ToUseShortType(With("torch"), "bfloat16", "cuda"), "torch.autocast(\"cuda\", torch.bfloat16)");
  EXPECT_THAT(ToUseShortType(With("torch"), "float16", "cuda"), HasSubstr("GradScaler"));
  for (const char* framework : {"keras", "tensorflow", "jax"})
    EXPECT_THAT(ToUseShortType(With(framework), "bfloat16", "cuda"), Not(HasSubstr("torch"))) << framework;
}

TEST(ProgramWordsTest, AnEngineIsSpokenToInItsOwnArguments) {
  Program program = With("torch");
  program.engine = "vLLM";
  EXPECT_THAT(ToCompile(program).fix, HasSubstr("--enforce-eager"));
  program.engine = "SGLang";
  EXPECT_THAT(ToUseGraphs(program).fix, HasSubstr("--disable-cuda-graph"));
}

}  // namespace
}  // namespace fullbore::diagnose
