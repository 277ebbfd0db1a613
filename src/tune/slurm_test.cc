#include "tune/slurm.h"

#include <gtest/gtest.h>

namespace fullbore::tune {
namespace {

TEST(SlurmTest, ReadsAJobsStateFromTheControllersLine) {
  EXPECT_EQ(
      JobStateIn("JobId=7 JobName=fullbore UserId=ada(1000) JobState=RUNNING Reason=None Dependency=(null)"),
      "RUNNING");
  EXPECT_EQ(JobStateIn("JobState=COMPLETED\n"), "COMPLETED");
  EXPECT_EQ(JobStateIn("slurm_load_jobs error: Invalid job id specified"), "");
}

TEST(SlurmTest, ALostNodeAndAPreemptionSayNothingAboutTheSettings) {
  for (const char* state : {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED"})
    EXPECT_EQ(EndOf(state), JobEnd::kAgain) << state;
}

TEST(SlurmTest, AJobThatSlurmEndsForItsMemoryOrItsTimeIsAResult) {
  EXPECT_EQ(EndOf("OUT_OF_MEMORY"), JobEnd::kOutOfMemory);
  EXPECT_EQ(EndOf("TIMEOUT"), JobEnd::kTooLong);
}

TEST(SlurmTest, WhatMayStillBringAnAnswerGoesOn) {
  for (const char* state : {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", ""})
    EXPECT_EQ(EndOf(state), JobEnd::kGoesOn) << state;
}

}  // namespace
}  // namespace fullbore::tune
