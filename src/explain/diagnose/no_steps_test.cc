#include "explain/diagnose/no_steps.h"

#include <gmock/gmock.h>

#include "explain/diagnose/diagnose.h"

namespace fullbore::diagnose {
namespace {

using ::testing::HasSubstr;

Diagnosis DiagnosisOf(const std::string& source, const std::string& held) {
  record::Recording recording;
  recording.source = source;
  record::Stage stage;
  stage.ranks.emplace_back();
  if (!held.empty()) stage.ranks[0].facts["trace_holds"] = held;
  recording.stages.push_back(stage);
  return Diagnose(recording);
}

TEST(NoStepsTest, ATraceKeepsWhatItHolds) {
  const Diagnosis diagnosis = DiagnosisOf("kineto", "\"120 operators of the CPU\"");
  EXPECT_EQ(diagnosis.facts.at("trace_holds"), "\"120 operators of the CPU\"");
  ASSERT_EQ(diagnosis.not_judged.size(), 1U);
  EXPECT_EQ(diagnosis.not_judged[0].why, "it marks no steps and holds no device activity");
  EXPECT_THAT(diagnosis.not_judged[0].needs, HasSubstr("ProfilerActivity.CUDA"));
}

TEST(NoStepsTest, AnEmptyTraceIsCalledEmpty) {
  for (const std::string held : {"", "\"\""}) {
    const Diagnosis diagnosis = DiagnosisOf("kineto", held);
    EXPECT_EQ(diagnosis.facts.at("trace_holds"), "\"\"");
    EXPECT_EQ(diagnosis.not_judged.at(0).why, "nothing was recorded in it");
  }
}

TEST(NoStepsTest, ARunIsNotSpokenOfAsATrace) {
  const Diagnosis diagnosis = DiagnosisOf("run", "");
  EXPECT_EQ(diagnosis.facts.count("trace_holds"), 0U);
  EXPECT_EQ(diagnosis.not_judged.at(0).why, "no optimizer step was seen");
}

}  // namespace
}  // namespace fullbore::diagnose
