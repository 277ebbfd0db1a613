#include "base/captured.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace fullbore {
namespace {

constexpr int64_t kLong = 30 * kNsPerSecond;

TEST(RunAndCaptureTest, ReturnsWhatAProgramPrintsAndItsStatus) {
  const auto done = RunAndCapture({"sh", "-c", "echo out; echo error >&2; exit 3"}, kLong);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->status, 3);
  EXPECT_EQ(done->output, "out\n");
  EXPECT_EQ(done->errors, "error\n");
}

TEST(RunAndCaptureTest, TellsASignalFromAStatus) {
  const auto done = RunAndCapture({"sh", "-c", "kill -9 $$"}, kLong);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, 128 + 9);
}

TEST(RunAndCaptureTest, GivesTheProgramNothingToRead) {
  const auto done = RunAndCapture({"cat"}, kLong);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->output, "");
}

TEST(RunAndCaptureTest, GivesTheProgramTheWholeOfItsInput) {
  const std::string input = std::string(300'000, 'x') + "\nend";  // more than a pipe would hold
  const auto done = RunAndCapture({"cat"}, kLong, input);
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->output == input);
}

TEST(RunAndCaptureTest, SaysThatThereIsNoSuchProgram) {
  const auto done = RunAndCapture({"no-such-program-anywhere"}, kLong);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kNotFound);
}

TEST(RunAndCaptureTest, KillsWhatGivesNoAnswerWithAllThatItStarted) {
  const auto done = RunAndCapture({"sh", "-c", "sleep 100 & sleep 100"}, kNsPerSecond / 10);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace fullbore
