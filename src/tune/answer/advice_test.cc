#include "tune/answer/advice.h"

#include <gmock/gmock.h>

#include "tune/search/testing/surface.h"

namespace fullbore::tune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Answer Recommending(Settings settings, Settings before = {}) {
  Answer answer;
  answer.baseline.emplace().settings = std::move(before);
  answer.recommended.emplace().settings = std::move(settings);
  answer.recommended->run = "2026-11-24-1200-train-3";
  return answer;
}

TEST(TuneAdviceTest, WhatStandsInTheCommandIsPutThereAndTheRestIsALineOfTheScript) {
  AnswerContext context;
  context.command = {"python", "train.py", "--batch", "{batch_size}"};
  context.known.loader_where = "train.py:12";
  const Advice advice = AdviceOf(Recommending({{"batch_size", 64}, {"num_workers", 2}}), context);
  EXPECT_EQ(advice.command, "python train.py --batch 64");
  ASSERT_EQ(advice.lines.size(), 1);
  EXPECT_EQ(advice.lines[0].code, "DataLoader(num_workers=2)");
  EXPECT_EQ(advice.lines[0].where, "train.py:12");
  EXPECT_THAT(advice.without_edit, HasSubstr("--apply 2026-11-24-1200-train-3 -- "));
}

TEST(TuneAdviceTest, WhatIsLearnedMayChangeWithTheBatchAndNotWithPinnedMemory) {
  EXPECT_THAT(ChangesOfResults(Recommending({{"batch_size", 64}, {"pin_memory", true}})),
              ElementsAre(HasSubstr("batch_size: ")));
}

TEST(TuneAdviceTest, ASettingThatIsAsItWasChangesNothing) {
  const Settings chosen = {{"batch_size", 64}, {"pin_memory", true}};
  EXPECT_THAT(ChangesOfResults(Recommending(chosen, {{"batch_size", 64}, {"pin_memory", false}})), IsEmpty());
}

Answer WithOtherBatches(const Surface& surface) {
  SurfaceLaboratory laboratory(surface);
  Question question;
  question.batch_apart = true;
  return Search(question, laboratory);
}

TEST(TuneAdviceTest, ALargerBatchIsOfferedWithWhatItChanges) {
  EXPECT_THAT(OfLargerBatches(WithOtherBatches({.a = 0.010, .b = 0.0001, .batch = 32})),
              ElementsAre(StartsWith("A larger batch would change training results: batch_size="),
                          StartsWith("It may change ")));
}

TEST(TuneAdviceTest, OfALargerBatchThatIsNotFasterItIsSaidThatItWasTried) {
  EXPECT_THAT(OfLargerBatches(WithOtherBatches({.a = 0, .b = 0.0001, .batch = 32})),
              ElementsAre(HasSubstr("is not faster: batch_size=128 was tried")));
}

TEST(TuneAdviceTest, WhereMemoryHoldsNoLargerBatchNothingIsSaidOfOne) {
  EXPECT_THAT(OfLargerBatches(WithOtherBatches({.a = 0.010, .b = 0.0001, .batch = 32, .batch_cliff = 32})),
              IsEmpty());
}

}  // namespace
}  // namespace fullbore::tune
