#include "watch/track/tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "watch/track/otlp.h"
#include "watch/track/wandb.h"

namespace fullbore::watch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = TrackerName::Kind;

TEST(TrackerNameTest, HasAKindAndAPlace) {
  EXPECT_EQ(TrackerNamed("tensorboard:runs/a:b").value().place, "runs/a:b");
  EXPECT_EQ(TrackerNamed("mlflow:http://h:5000").value().place, "http://h:5000");
  EXPECT_EQ(TrackerNamed("wandb").value().kind, Kind::kWandb);
  EXPECT_EQ(TrackerNamed("otlp:http://h:4318").value().kind, Kind::kOtlp);
  EXPECT_FALSE(NamesATracker("perfetto"));
  EXPECT_FALSE(NamesATracker("mlflowx"));
}

TEST(TrackerNameTest, SaysWhatIsMissing) {
  unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
  EXPECT_THAT(TrackerNamed("tensorboard").error().text, HasSubstr("no directory"));
  EXPECT_THAT(TrackerNamed("otlp").error().text, HasSubstr("no collector"));
  EXPECT_THAT(TrackerNamed("mlflow:sqlite:///a.db").error().hint, HasSubstr("mlflow server"));
  EXPECT_THAT(TrackerNamed("comet").error().hint, HasSubstr("wandb[:PROJECT]"));
}

TEST(TrackerNameTest, ShowsNoPassword) {
  const auto tracker = MakeTracker(TrackerNamed("mlflow:http://me:secret@h:5000").value());
  EXPECT_THAT(tracker->name(), Not(HasSubstr("secret")));
}

TEST(TrackerNameTest, IsTheSameWhereverTheServerIsNamed) {
  setenv("MLFLOW_TRACKING_URI", "http://h:5000", 1);
  EXPECT_EQ(TrackerNamed("mlflow").value(), TrackerNamed("mlflow:http://h:5000").value());
  unsetenv("MLFLOW_TRACKING_URI");
  EXPECT_NE(TrackerNamed("wandb:a").value(), TrackerNamed("wandb:b").value());
}

TEST(TrackedRunTest, HasANameThatLeadsNowhere) {
  const auto id_of = [](const char* id) {
    record::Recording recording;
    recording.id = id;
    return TrackedRun::Of(recording).id;
  };
  EXPECT_EQ(id_of("2026-11-21-0915-train_v1.2"), "2026-11-21-0915-train_v1.2");
  EXPECT_EQ(id_of("../../etc"), "run.._.._etc");
  EXPECT_EQ(id_of("a' OR name = 'b"), "a__OR_name____b");
  EXPECT_EQ(id_of(""), "run");
}

TEST(OtlpHeadersTest, AreReadAsTheSpecificationSays) {
  EXPECT_THAT(HeadersIn("api-key=a%20b, x = y,broken,=z"), ElementsAre("api-key: a b", "x: y"));
  EXPECT_THAT(HeadersIn("evil=a%0d%0ab"), ElementsAre());
}

TEST(PythonOfTest, IsTheOneOfTheCommand) {
  EXPECT_EQ(PythonOf({"python3.12", "train.py"}, "/home/u"), "python3.12");
  EXPECT_EQ(PythonOf({".venv/bin/python", "train.py"}, "/home/u"), "/home/u/.venv/bin/python");
  EXPECT_EQ(PythonOf({"/opt/python", "train.py"}, "/home/u"), "/opt/python");
  EXPECT_EQ(PythonOf({"torchrun", "train.py"}, "/home/u"), "python3");
  EXPECT_EQ(PythonOf({}, "/home/u"), "python3");
}

}  // namespace
}  // namespace fullbore::watch
