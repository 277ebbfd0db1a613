#include "explain/diagnose/framework_words.h"

#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::FindsCause;
using ::testing::HasSubstr;
using ::testing::Not;

ARun WaitingFor(const char* library) {
  ARun run = ATraining().InEachStep(Share::kDataWait, 100);
  record::Loader loader;
  loader.id = 1;
  loader.feeds_training = true;
  loader.library = library;
  run.FedBy(loader);
  return run;
}

Finding InputBound(const ARun& run) { return *FindingIn(Diagnose(run), "input-bound"); }

TEST(FrameworkWordsTest, AMapThatWorksOneByOneIsToldToWorkInParallel) {
  ARun run = WaitingFor("tf.data");
  run.rank().facts["tf_data"] = R"({"stages": "map -> batch", "num_parallel_calls": {"map": [null]}})";

  EXPECT_THAT(Diagnose(run), FindsCause("input-bound", "serial-map"));
  EXPECT_THAT(InputBound(run).title, HasSubstr("one element at a time"));
  EXPECT_EQ(InputBound(run).change, "dataset.map(..., num_parallel_calls=tf.data.AUTOTUNE)");
  EXPECT_THAT(InputBound(run), Advises(".prefetch(tf.data.AUTOTUNE)"));
}

TEST(FrameworkWordsTest, AParallelMapIsNotBlamed) {
  ARun run = WaitingFor("tf.data");
  run.rank().facts["tf_data"] = R"({"prefetch": "AUTOTUNE", "num_parallel_calls": {"map": ["AUTOTUNE"]}})";

  EXPECT_THAT(Diagnose(run), FindsCause("input-bound", ""));
  EXPECT_THAT(InputBound(run), Not(Advises(".prefetch(tf.data.AUTOTUNE)")));
  EXPECT_THAT(InputBound(run), Advises(".cache()"));
}

TEST(FrameworkWordsTest, AFactThatIsNoObjectIsNoObstacle) {
  ARun run = WaitingFor("tf.data");
  run.rank().facts["tf_data"] = R"("nonsense")";

  EXPECT_THAT(InputBound(run), Advises(".prefetch(tf.data.AUTOTUNE)"));
}

TEST(FrameworkWordsTest, NobodyIsToldOfWorkersThatTheirLibraryDoesNotHave) {
  for (const char* library : {"tf.data", "keras.arrays", "keras.generator", "keras.PyDataset", "grain"})
    EXPECT_THAT(InputBound(WaitingFor(library)), Not(Advises("num_workers"))) << library;
}

TEST(FrameworkWordsTest, AnOwnIteratorOfAJaxProgramIsOfferedWhatJaxProgramsUse) {
  const auto beside = [](const record::Recording& recording) {
    return BesideTheTraining(View(recording, recording.stages.front()));
  };
  ARun run = ATraining();
  EXPECT_THAT(beside(run), HasSubstr("num_workers"));
  run.rank().facts["framework"] = "\"jax\"";
  EXPECT_THAT(beside(run), HasSubstr("grain"));
  run.rank().facts["framework"] = "\"tensorflow\"";
  EXPECT_THAT(beside(run), HasSubstr("tf.data"));
}

}  // namespace
}  // namespace fullbore::diagnose
