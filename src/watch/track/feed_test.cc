#include "watch/track/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "record/metrics.h"
#include "watch/track/testing/trained_run.h"

namespace fullbore::watch {
namespace {

using testing::kBeginNs;
using testing::TrainedRun;
using Ends = Attempt::End;

// Takes so many messages, and then answers as it is told.
struct Notes {
  int takes = 1000;
  Attempt then = {Ends::kFailed, "away"};
  int begun = 0, ended = 0;
  std::vector<int64_t> moments;
  std::set<std::string> names;  // of what was sent
};

class FakeTracker : public Tracker {
 public:
  explicit FakeTracker(Notes& notes) : notes_(notes) {}
  std::string name() const override { return "a fake"; }
  std::string_view logger() const override { return "mlflow"; }
  Attempt Begin(const TrackedRun&) override { return ++notes_.begun, Answer(); }
  Attempt Send(const std::vector<Sample>& samples) override {
    const Attempt answer = Answer();
    if (answer.end == Ends::kDelivered) {
      for (const Sample& sample : samples) {
        notes_.moments.push_back(sample.end_ns);
        for (const Value& value : sample.values) notes_.names.insert(NameOf(value.key));
      }
    }
    return answer;
  }
  Attempt End(const TrackedRun&, const Conclusion&) override { return ++notes_.ended, Answer(); }

 private:
  Attempt Answer() { return notes_.takes-- > 0 ? Attempt{Ends::kDelivered, ""} : notes_.then; }
  Notes& notes_;
};

TEST(FeedTest, SendsEachSampleOnceWhileTheRunGoesOn) {
  Notes notes;
  Feed feed(std::make_unique<FakeTracker>(notes));
  for (int64_t seconds = 1; seconds <= 60; ++seconds)
    EXPECT_EQ(feed.Bring(TrainedRun(seconds, false), false).end, Ends::kDelivered);
  EXPECT_EQ(feed.Bring(TrainedRun(61, true), true).end, Ends::kDelivered);
  ASSERT_EQ(notes.moments.size(), 31);
  for (size_t i = 1; i < notes.moments.size(); ++i) EXPECT_LT(notes.moments[i - 1], notes.moments[i]);
  EXPECT_EQ(notes.begun, 1);
  EXPECT_EQ(notes.ended, 1);
  EXPECT_TRUE(feed.done());
}

TEST(FeedTest, SendsNothingBackToWhereTheScriptLoggedIt) {
  record::Recording recording = TrainedRun(4, true);
  record::Stage& stage = recording.stages.back();
  for (const char* metric : {"loss", "accuracy"}) {
    record::Series& series = stage.series.emplace_back();
    series.key = record::KeyOf(record::Metric::kLogged, {{"metric", metric}, {"rank", "0"}});
    series.readings = {{kBeginNs + kNsPerSecond, 0.5}};
  }
  stage.ranks[0].facts["logged"] =
      R"({"loss": {"loggers": ["wandb", "mlflow"]}, "accuracy": {"loggers": ["print"]}})";
  Notes notes;
  Feed feed(std::make_unique<FakeTracker>(notes));
  EXPECT_EQ(feed.Bring(recording, true).end, Ends::kDelivered);
  EXPECT_TRUE(notes.names.contains("logged/accuracy"));
  EXPECT_FALSE(notes.names.contains("logged/loss"));
}

TEST(FeedTest, SendsWhatWasMissedWhenTheTrackerIsBack) {
  Notes notes;
  Feed feed(std::make_unique<FakeTracker>(notes));
  notes.takes = 2;  // its beginning, and the first samples
  (void)feed.Bring(TrainedRun(30, false), false);
  const size_t before = notes.moments.size();
  EXPECT_EQ(feed.Bring(TrainedRun(90, false), false).end, Ends::kFailed);
  EXPECT_EQ(notes.moments.size(), before);
  notes.takes = 1000;
  EXPECT_EQ(feed.Bring(TrainedRun(120, true), true).end, Ends::kDelivered);
  EXPECT_EQ(notes.moments.size(), 60);
}

TEST(FeedTest, GoesOnAfterTheMessageThatWasTaken) {
  Notes notes;
  Feed feed(std::make_unique<FakeTracker>(notes));
  notes.takes = 2;
  EXPECT_EQ(feed.Bring(TrainedRun(120, true), true).end, Ends::kFailed);
  EXPECT_EQ(notes.moments.size(), Tracker::kMostSamples);
  EXPECT_FALSE(feed.done());
  notes.takes = 1000;
  EXPECT_EQ(feed.Bring(TrainedRun(120, true), true).end, Ends::kDelivered);
  EXPECT_EQ(notes.moments.size(), 60);
  EXPECT_TRUE(feed.done());
}

TEST(FeedTest, WaitsForTheScriptToOpenItsRunBeforeItTrains) {
  Notes notes;
  Feed feed(std::make_unique<FakeTracker>(notes));
  record::Recording imports = TrainedRun(20, false);
  imports.stages[0].ranks.clear();
  (void)feed.Bring(imports, false);
  EXPECT_EQ(notes.begun, 0);
  imports.stages[0].end_ns = kBeginNs + 301 * kNsPerSecond;
  (void)feed.Bring(imports, false);
  EXPECT_EQ(notes.begun, 1);
}

TEST(FeedTest, KeepsWhyValuesWereRefused) {
  Notes notes;
  notes.takes = 1;
  notes.then = {Ends::kDelivered, "too old"};
  Feed feed(std::make_unique<FakeTracker>(notes));
  (void)feed.Bring(TrainedRun(30, false), false);
  EXPECT_EQ(feed.partly(), "too old");
}

}  // namespace
}  // namespace fullbore::watch
