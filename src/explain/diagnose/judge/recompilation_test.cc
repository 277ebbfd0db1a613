#include <gtest/gtest.h>

#include <functional>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::HostOther;
using record::Share;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::HasSubstr;
using testing::kMs;
using ::testing::Not;

constexpr char kUpdate[] =
    R"([{"function": "init", "count": 2, "ns": 5, "why": "shapes", "file": "/w/train.py", "line": 3},
        {"function": "update", "count": 34, "ns": 3400000000, "why": "shapes", "file": "/w/train.py", "line": 57,
         "example": "argument 2: float32[16,100], then float32[16,101]"}, {"line": "x"}, 3])";

// A hundred steps of 100 ms; those that `compiles` says take another 100 ms to compile.
ARun Compiling(const std::function<bool(int64_t)>& compiles, const char* said = kUpdate) {
  ARun run = ATraining();
  run.rank().facts["compilations"] = said;
  for (int64_t step = 0; step < 100; ++step) {
    if (!compiles(step)) continue;
    run.InStep(step, Share::kHostOther, 100);
    record::Step& compiling = run.rank().steps[static_cast<size_t>(step)];
    compiling.host_other_ns = {};
    compiling.host_other_ns[static_cast<size_t>(HostOther::kCompilation)] = 100 * kMs;
  }
  return run;
}

bool EveryThird(int64_t step) { return step % 3 == 0; }

TEST(RecompilationTest, IsRaisedWhereAFunctionIsCompiledAgainAndAgain) {
  const Diagnosis diagnosis = Diagnose(Compiling(EveryThird));
  ASSERT_THAT(diagnosis, FindsCause("recompilation", "shapes"));
  const Finding& finding = *FindingIn(diagnosis, "recompilation");
  EXPECT_NEAR(finding.share, 0.25, 0.01);
  EXPECT_NEAR(finding.speedup.expected, 1 / (1 - 0.9 * 0.25), 0.02);
  EXPECT_THAT(finding.title,
              HasSubstr("update was compiled 34 times, because the shapes of its arguments change"));
  EXPECT_THAT(finding.title, HasSubstr("float32[16,101]"));
  EXPECT_EQ(finding.where.front().line, 57);
  EXPECT_THAT(finding.fix.front(), HasSubstr("pad the batches"));
  EXPECT_THAT(diagnosis, Not(Finds("host-other"))) << "each cause is named once";
  EXPECT_THAT(diagnosis, Not(Finds("unstable-steps")));
}

TEST(RecompilationTest, SaysWhatToDoWhereTheFunctionIsMadeAnew) {
  const Diagnosis diagnosis = Diagnose(
      Compiling(EveryThird, R"([{"function": "<lambda>", "count": 34, "ns": 1, "why": "new-function"}])"));
  ASSERT_THAT(diagnosis, FindsCause("recompilation", "new-function"));
  EXPECT_THAT(FindingIn(diagnosis, "recompilation")->fix.front(), HasSubstr("outside the loop"));
}

ARun OfTorch(ARun run, const char* compilations) {
  run.rank().facts["framework"] = "\"torch\"";
  run.rank().facts["compilations"] = compilations;
  return run;
}

TEST(RecompilationTest, TheGuardThatFailedTellsWhatToDoInTorch) {
  const auto fix_for = [](const char* said) {
    return FindingIn(Diagnose(OfTorch(Compiling(EveryThird), said)), "recompilation")->fix.front();
  };
  EXPECT_THAT(fix_for(R"([{"function": "forward", "count": 34, "ns": 1, "why": "shapes"}])"),
              HasSubstr("dynamic=True"));
  EXPECT_THAT(fix_for(R"([{"function": "forward", "count": 34, "ns": 1, "why": "constants"}])"),
              HasSubstr("pass them as tensors"));
}

TEST(RecompilationTest, AFunctionThatTorchHasGivenUpIsNamedThoughNothingCompilesAnyMore) {
  ARun run = OfTorch(ATraining(), R"([{"function": "forward", "count": 8, "ns": 1, "why": "shapes",
      "example": "tensor 'x' size mismatch at index 0. expected 8, actual 7", "file": "/w/train.py", "line": 9}])");
  EXPECT_THAT(Diagnose(run), Not(Finds("recompilation")));
  run.rank().facts["compile_limit"] = "true";
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("recompilation", "given-up"));
  const Finding& finding = *FindingIn(diagnosis, "recompilation");
  EXPECT_THAT(finding.title, HasSubstr("given up on forward after 8 of them"));
  EXPECT_THAT(finding.title, HasSubstr("size mismatch at index 0"));
  EXPECT_EQ(finding.where.front().line, 9);
  EXPECT_THAT(finding.fix.front(), HasSubstr("dynamic=True"));
  EXPECT_EQ(finding.method, "") << "what it costs is not known";
}

TEST(RecompilationTest, GraphBreaksAreMentioned) {
  ARun run = OfTorch(ATraining(), "[]");
  run.rank().facts["graph_breaks"] = R"({"count": 3, "most": [{"reason": "Tensor.item", "count": 3}, 7]})";
  const Diagnosis diagnosis = Diagnose(run);
  const Finding* finding = FindingIn(diagnosis, "recompilation");
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->title, HasSubstr("breaks its graph at 3 places: Tensor.item."));
  EXPECT_EQ(finding->severity, Severity::kInfo);
  for (const char* strange : {"[]", "{}", "7", R"({"count": "many"})"}) {
    run.rank().facts["graph_breaks"] = strange;
    EXPECT_THAT(Diagnose(run), Not(Finds("recompilation"))) << strange;
  }
}

TEST(RecompilationTest, IsSaidInTheWordsOfTorchWhereDynamoCompiles) {
  ARun run = Compiling(EveryThird, R"([{"function": "forward", "count": 34, "ns": 1, "why": ""}])");
  run.rank().facts["framework"] = "\"torch\"";
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, Finds("recompilation"));
  EXPECT_THAT(FindingIn(diagnosis, "recompilation")->fix.front(), HasSubstr("TORCH_LOGS=recompiles"));
}

TEST(RecompilationTest, IsRaisedWithoutAWordOfWhatWasCompiled) {
  EXPECT_THAT(Diagnose(Compiling(EveryThird, "7")), Finds("recompilation"));
}

TEST(RecompilationTest, IsNotRaisedByAFewShapesThatAreAllCompiledSoon) {
  EXPECT_THAT(Diagnose(Compiling([](int64_t step) { return step < 40 && step % 4 == 0; })),
              Not(Finds("recompilation")));
}

TEST(RecompilationTest, IsNotRaisedByTheShortLastBatchAndTheEvaluation) {
  EXPECT_THAT(Diagnose(Compiling([](int64_t step) { return step == 60 || step == 61; })),
              Not(Finds("recompilation")));
}

TEST(RecompilationTest, IsNotRaisedByCompilationsThatCostNothing) {
  EXPECT_THAT(Diagnose(Compiling([](int64_t step) { return step % 30 == 0; })), Not(Finds("recompilation")));
}

}  // namespace
}  // namespace fullbore::diagnose
