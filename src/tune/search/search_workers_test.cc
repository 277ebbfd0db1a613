#include <gmock/gmock.h>

#include <algorithm>

#include "tune/search/testing/questions.h"
#include "tune/search/testing/surface.h"

namespace fullbore::tune {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

TEST(SearchWorkersTest, FindsTheFewestWorkersThatFeedTheTraining) {
  // The device takes 2,424 samples/s, a worker loads 500: 0.95 of it need 4.6 of them.
  SurfaceLaboratory laboratory({.fetch_s = 0.002});
  const Answer answer = Search(About({"num_workers"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 5);
  EXPECT_GT(answer.gain.low, 1);
  EXPECT_LE(laboratory.trials, 8) << "the baseline, three numbers, the finalists in turns";
}

TEST(SearchWorkersTest, WorkersThatNobodyNeedsAreTakenBack) {
  SurfaceLaboratory laboratory({.fetch_s = 0.0005, .workers = 8});
  const Answer answer = Search(About({"num_workers"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 8), 2);
}

TEST(SearchWorkersTest, ATrainingThatDoesNotWaitIsNotGivenWorkers) {
  SurfaceLaboratory laboratory({.fetch_s = 1e-7});
  const Answer answer = Search(About({"num_workers"}), laboratory);
  EXPECT_TRUE(answer.recommended->settings.empty());
  EXPECT_EQ(answer.gain.expected, 1);
  EXPECT_EQ(laboratory.trials, 1);
  ASSERT_THAT(answer.not_tried, SizeIs(1));
  EXPECT_THAT(answer.not_tried[0], HasSubstr("waits for data only"));
}

TEST(SearchWorkersTest, WhereNoNumberOfWorkersIsTriedItIsSaidWhy) {
  SurfaceLaboratory laboratory({.fetch_s = 0.002, .workers = 2, .cores = 2, .replays = true});
  const Answer answer = Search(About({"num_workers"}), laboratory);
  EXPECT_EQ(laboratory.trials, 1);
  EXPECT_THAT(answer.not_tried, Contains(HasSubstr("no number other than 2 is faster")));
}

TEST(SearchWorkersTest, WorkersThatImportAScriptNotMadeForItAreTriedOnce) {
  SurfaceLaboratory laboratory({.fetch_s = 0.002, .importing = true});
  const Answer answer = Search(About({"num_workers"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 0);
  EXPECT_EQ(std::count_if(answer.trials.begin(), answer.trials.end(),
                          [](const Trial& trial) { return trial.outcome == Outcome::kCrashed; }),
            1);
  EXPECT_THAT(answer.not_tried, ::testing::Contains(::testing::HasSubstr("if __name__ == \"__main__\"")));
}

TEST(SearchWorkersTest, WhatIsPredictedOfWorkersIsForTheBatchThatWasAdopted) {
  SurfaceLaboratory laboratory({.fetch_s = 0.0005, .workers = 1, .batch = 8, .replays = true});
  const Answer answer = Search(About({"batch_size", "num_workers"}), laboratory);
  int predicted = 0;
  for (const Trial& trial : answer.trials) {
    if (!trial.predicted || !trial.settings.contains("num_workers")) continue;
    ++predicted;
    EXPECT_GT(ValueIn(trial, "batch_size", 8), 8);
    EXPECT_NEAR(*trial.predicted, trial.rate->mean, 0.05 * trial.rate->mean) << ToText(trial.settings);
  }
  EXPECT_GE(predicted, 1);
}

// Two cores: workers beside a training of two threads are slower than none, and twice as fast beside one of one.
const Surface kShared = {.a = 0.001, .b = 0.0001, .fetch_s = 0.002, .cores = 2, .threads = 2, .held_up = 20};

TEST(SearchWorkersTest, WorkersThatHoldUpTheTrainingAreTriedBesideFewerOfItsThreads) {
  SurfaceLaboratory laboratory(kShared);
  const Answer answer = Search(About({"num_workers", "intraop_threads"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 2);
  EXPECT_EQ(Chosen(answer, "intraop_threads", 2), 1);
  EXPECT_THAT(answer.not_tried, Not(Contains(HasSubstr("intraop_threads"))));
}

// Whose replay knows nothing of what the training's threads are good for.
class MisledLaboratory : public SurfaceLaboratory {
 public:
  using SurfaceLaboratory::SurfaceLaboratory;
  std::optional<Known> Learn(const Trial& trial) override {
    auto known = SurfaceLaboratory::Learn(trial);
    known->replay = [](int64_t workers, int64_t threads) { return workers == 2 && threads == 1 ? 3.0 : 1.0; };
    return known;
  }
};

TEST(SearchWorkersTest, FewerThreadsThatGainNothingInSpiteOfTheReplayAreTakenBack) {
  Surface surface = kShared;
  surface.held_up = 1;
  surface.pool = 20;
  MisledLaboratory laboratory(surface);
  const Answer answer = Search(About({"num_workers", "intraop_threads"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 2);
  EXPECT_EQ(Chosen(answer, "intraop_threads", 2), 2);
}

TEST(SearchWorkersTest, WorkersAreTriedAtOnceWithTheThreadsThatTheReplayAdvises) {
  Surface surface = kShared;
  surface.replays = true;
  SurfaceLaboratory laboratory(surface);
  const Answer answer = Search(About({"num_workers", "intraop_threads"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 2);
  EXPECT_EQ(Chosen(answer, "intraop_threads", 2), 1);
  ASSERT_GE(answer.trials.size(), 2u);
  EXPECT_EQ(answer.trials[1].settings, (Settings{{"intraop_threads", 1}, {"num_workers", 2}}));
}

TEST(SearchWorkersTest, WorkersThatHoldUpTheTrainingAlreadyAreGivenTheCoresOfSomeOfItsThreads) {
  Surface surface = kShared;
  surface.workers = 2;
  SurfaceLaboratory laboratory(surface);
  const Answer answer = Search(About({"num_workers", "intraop_threads"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 2), 2);
  EXPECT_EQ(Chosen(answer, "intraop_threads", 2), 1);
}

TEST(SearchWorkersTest, ThreadsThatMayNotBeTurnedStayAsTheyAre) {
  SurfaceLaboratory laboratory(kShared);
  const Answer answer = Search(About({"num_workers"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 0);
  for (const Trial& trial : answer.trials) EXPECT_FALSE(trial.settings.contains("intraop_threads"));
}

}  // namespace
}  // namespace fullbore::tune
