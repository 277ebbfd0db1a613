#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::ServingPhase;
using testing::ARun;
using testing::ATrace;
using testing::kMs;

TEST(ServingTest, PrefillAndDecodeAreToldApartWithTheirTokens) {
  ARun run = ATrace(10);
  run.rank().noticed.engine = "SGLang";
  run.rank().noticed.served = {{ServingPhase::kPrefill, 2, 400 * kMs, 8192},
                               {ServingPhase::kDecode, 8, 600 * kMs, std::nullopt}};
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_EQ(diagnosis.engine, "SGLang");
  ASSERT_EQ(diagnosis.served.size(), 2U);
  EXPECT_EQ(diagnosis.served[0].phase, "prefill");
  EXPECT_DOUBLE_EQ(diagnosis.served[0].share, 0.4);
  EXPECT_DOUBLE_EQ(*diagnosis.served[0].tokens_per_s, 20480);
  EXPECT_DOUBLE_EQ(*diagnosis.served[0].tokens_per_iteration, 4096);
  EXPECT_FALSE(diagnosis.served[1].tokens_per_s.has_value());
  EXPECT_FALSE(diagnosis.samples_per_s.has_value());
}

TEST(ServingTest, ATrainingServesNothing) { EXPECT_EQ(Diagnose(ATrace(10)).engine, ""); }

}  // namespace
}  // namespace fullbore::diagnose
