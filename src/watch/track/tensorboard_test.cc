#include "watch/track/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/fd.h"
#include "base/testing/scratch_directory.h"
#include "watch/track/testing/trained_run.h"

namespace fullbore::watch {
namespace {

using ::testing::HasSubstr;

TEST(EventRecordTest, IsFramedAsATfRecord) {
  // From tensorboard's own EventFileWriter: the event of wall time 0 that names the version of the file.
  const std::string event = std::string("\x09\0\0\0\0\0\0\0\0\x1a\x0d", 11) + "brain.Event:2";
  const std::string record = EventRecord(event);
  ASSERT_EQ(record.size(), 8 + 4 + event.size() + 4);
  EXPECT_EQ(record.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  EXPECT_EQ(record.substr(12, event.size()), event);
}

TEST(TensorBoardTest, WritesADirectoryOfTheRunsOwnAndTheSameAgain) {
  const ScratchDirectory directory;
  const record::Recording recording = testing::TrainedRun(10, true);
  const auto write = [&] {
    TensorBoard board(directory.path());
    EXPECT_EQ(board.Begin(TrackedRun::Of(recording)).end, Attempt::End::kDelivered);
    EXPECT_EQ(board.Send(SamplesOf(recording, 0)).end, Attempt::End::kDelivered);
    return *ReadFile(directory.path() + "/2026-11-21-0915-train/events.out.tfevents.1500.fullbore");
  };
  const std::string first = write();
  EXPECT_THAT(first, HasSubstr("fullbore/samples_per_s"));
  EXPECT_THAT(first, HasSubstr("custom_scalars__config__"));
  EXPECT_EQ(write(), first);
}

TEST(TensorBoardTest, SaysWhereItCannotWrite) {
  TensorBoard board("/proc/no/such");
  const Attempt attempt = board.Begin(TrackedRun::Of(testing::TrainedRun(2, true)));
  EXPECT_EQ(attempt.end, Attempt::End::kFailed);
  EXPECT_THAT(attempt.problem, HasSubstr("/proc/no"));
}

}  // namespace
}  // namespace fullbore::watch
