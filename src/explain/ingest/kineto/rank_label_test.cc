#include "explain/ingest/kineto/rank_label.h"

#include <gmock/gmock.h>

namespace fullbore::ingest::kineto {
namespace {

TEST(RankLabelTest, LabelsOfMergedTracesAreTakenOff) {
  const auto split = [](std::string_view process) {
    const auto found = SplitRankLabel(process);
    return found ? std::string(found->label) + "|" + std::string(found->rest) : "none";
  };
  EXPECT_EQ(split("[Rank 0] 50000"), "Rank 0|50000");
  EXPECT_EQ(split("[TP01-PP00] 4242"), "TP01-PP00|4242");
  EXPECT_EQ(split("rank3_4242"), "rank3|4242");
  EXPECT_EQ(split("Rank 3: 4242"), "Rank 3|4242");
  EXPECT_EQ(split("rank12"), "rank12|");
}

TEST(RankLabelTest, OtherNamesOfProcessesAreNoLabels) {
  for (const char* process : {"4242", "Spans", "Traces", "PyTorch Profiler (0)", "[memory]", "[unfinished 1",
                              "ranking", "rank", "rank3x", "python3", ""})
    EXPECT_FALSE(SplitRankLabel(process)) << process;
  EXPECT_FALSE(SplitRankLabel("[1" + std::string(1000, 'x') + "] 4242"));
}

TEST(RankLabelTest, RanksAreTheNumbersOfTheirLabelsIfThatIsClear) {
  EXPECT_THAT(RanksOfLabels({"Rank 1", "Rank 3"}), ::testing::ElementsAre(1, 3));
  EXPECT_THAT(RanksOfLabels({"TP0-PP0", "TP0-PP1"}), ::testing::ElementsAre(0, 1));
  EXPECT_THAT(RanksOfLabels({"DP0", "TP0"}), ::testing::ElementsAre(0, 1));
}

}  // namespace
}  // namespace fullbore::ingest::kineto
