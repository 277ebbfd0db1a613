#include "explain/ingest/engine_steps.h"

#include <gtest/gtest.h>

#include "explain/ingest/span_names.h"

namespace fullbore::ingest {
namespace {

using record::ServingPhase;

void ExpectStep(const char* name, const char* engine, ServingPhase phase, int64_t tokens) {
  const auto step = EngineStepOf(name);
  ASSERT_TRUE(step.has_value()) << name;
  EXPECT_EQ(step->engine, engine) << name;
  EXPECT_EQ(step->phase, phase) << name;
  EXPECT_EQ(step->tokens, tokens) << name;
}

TEST(EngineStepsTest, VllmSaysHowManyTokensAreReadAndGenerated) {
  ExpectStep("execute_context_2(512)_generation_0(0)", "vLLM", ServingPhase::kPrefill, 512);
  ExpectStep("execute_context_0(0)_generation_8(8)", "vLLM", ServingPhase::kDecode, 8);
  ExpectStep("execute_context_1(100)_generation_7(7)", "vLLM", ServingPhase::kMixed, 107);
  ExpectStep("execute_4_context_3(sq128sk256sqsq1sqsk1)_generation_2(sq2sk300sqsq1sqsk1)", "vLLM",
             ServingPhase::kMixed, 130);
}

TEST(EngineStepsTest, OlderVllmSaysHowManyRequestsAreNew) {
  ExpectStep("execute_new_2_cached_0", "vLLM", ServingPhase::kPrefill, -1);
  ExpectStep("execute_new_0_cached_16", "vLLM", ServingPhase::kDecode, -1);
  ExpectStep("gpu_model_runner: forward", "vLLM", ServingPhase::kUnknown, -1);
}

TEST(EngineStepsTest, SglangSaysTheModeAndTheBatch) {
  ExpectStep("step[EXTEND bs=2 toks=4096]", "SGLang", ServingPhase::kPrefill, 4096);
  ExpectStep("step[DECODE bs=16]", "SGLang", ServingPhase::kDecode, 16);
  ExpectStep("step[DECODE bs=2 g_sqsq=2 g_sqsk=30 g_sk=30]", "SGLang", ServingPhase::kDecode, 2);
  ExpectStep("step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]",
             "SGLang", ServingPhase::kMixed, 6);
  ExpectStep("step[MIXED bs=2]", "SGLang", ServingPhase::kMixed, -1);
  ExpectStep("step[TARGET_VERIFY bs=4]", "SGLang", ServingPhase::kDecode, -1);
}

TEST(EngineStepsTest, RangesOfUsersAreNotAnEngines) {
  for (const char* name : {"step 12", "step", "train_step#7", "step[12]", "execute_model", "execute_query",
                           "execute_context_menu", "forward", "prefill", "decode", "ProfilerStep#3", ""}) {
    EXPECT_FALSE(EngineStepOf(name).has_value()) << name;
  }
}

TEST(EngineStepsTest, FunctionsOfTheEngineMarkItsIterationsToo) {
  EXPECT_TRUE(EngineStepOfFrame("vllm/v1/worker/gpu_model_runner.py(2345): execute_model").has_value());
  EXPECT_TRUE(EngineStepOfFrame("sglang/srt/managers/scheduler.py(1900): run_batch").has_value());
  EXPECT_FALSE(EngineStepOfFrame("mine/model_runner.py(3): execute_model").has_value());
  EXPECT_EQ(EngineOfFrame("/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py(1): step"), "vLLM");
  EXPECT_EQ(EngineOfFrame("train_vllm/v1/loop.py(1): step"), "");
}

timeline::DeviceTrace Offered(const std::vector<std::string>& names, bool optimizer) {
  timeline::DeviceTrace trace;
  NamedSteps steps;
  int64_t t = 0;
  for (const std::string& name : names) {
    steps.Offer(name, t, t + 90, 0);
    t += 100;
  }
  if (optimizer)
    trace.spans.push_back(
        {0, 10, trace.names.Find("Optimizer.step#AdamW.step"), 0, timeline::SpanKind::kOptimizer});
  std::move(steps).PutInto(&trace);
  return trace;
}

TEST(EngineStepsTest, AreTheStepsOfATraceThatTrainsNothing) {
  const auto trace = Offered({"step[EXTEND bs=1 toks=64]", "step[DECODE bs=1]", "step[DECODE bs=1]"}, false);
  EXPECT_EQ(trace.noticed.engine, "SGLang");
  ASSERT_EQ(trace.steps.size(), 3U);
  EXPECT_EQ(trace.steps[0].phase, ServingPhase::kPrefill);
  EXPECT_EQ(trace.steps[0].tokens, 64);
  EXPECT_EQ(trace.steps[2].number, 2);
}

TEST(EngineStepsTest, AreNoStepsWhereAnOptimizerSteps) {
  const auto trace = Offered({"step[EXTEND bs=1 toks=64]", "step[DECODE bs=1]", "step[DECODE bs=1]"}, true);
  EXPECT_EQ(trace.noticed.engine, "");
  EXPECT_TRUE(trace.steps.empty());
}

TEST(ProgramTest, IsToldByTheNamesOfATrace) {
  timeline::DeviceTrace trace;
  const auto span = [&](const char* name, timeline::SpanKind kind) {
    trace.spans.push_back({0, 1, trace.names.Find(name), 0, kind});
  };
  span("Optimizer.step#SGD.step", timeline::SpanKind::kOptimizer);
  span("Optimizer.step#SGD.step", timeline::SpanKind::kOptimizer);
  span("Optimizer.step#Lion.step", timeline::SpanKind::kOptimizer);
  span("FSDP::pre_forward (layers.0)", timeline::SpanKind::kAnnotation);
  const Program program = ProgramIn(trace);
  EXPECT_EQ(program.optimizer, "SGD");
  EXPECT_EQ(program.wrapper, "fully_shard");
  EXPECT_FALSE(program.compiled);
}

TEST(ProgramTest, IsCompiledWhereInductorsKernelsRunAndNotWhereAUsersOwnTritonKernelDoes) {
  timeline::DeviceTrace compiled, own;
  compiled.names.Find("triton_poi_fused_add_mul_0");
  own.names.Find("triton_attention_kernel");
  own.names.Find("fused_moe_kernel");
  EXPECT_TRUE(ProgramIn(compiled).compiled);
  EXPECT_FALSE(ProgramIn(own).compiled);
}

}  // namespace
}  // namespace fullbore::ingest
