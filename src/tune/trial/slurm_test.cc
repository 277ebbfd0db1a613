#include "tune/trial/slurm.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "base/temporary_directory.h"

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

// A cluster that is two programs in $PATH. Its job 7 prints something and is then in the state `state`; its answer is to
// be seen in the shared directory only when the controller is asked for the second time.
class ClusterOfScripts : public testing::Test {
 protected:
  ClusterOfScripts() {
    Program("sbatch",
            "for script; do :; done\nfolder=$(dirname \"$script\")\necho \"$folder\" > \"$here/folder\"\n"
            "echo a warning of some library > \"$folder/log\"\necho 7\n");
    Program("scontrol",
            "folder=$(cat \"$here/folder\")\n[ -f \"$here/asked\" ] && cp \"$here/answer\" "
            "\"$folder/answer.json\"\n: > \"$here/asked\"\necho JobState=$(cat \"$here/state\")\n");
    Write("answer", ToJson(Trial{}).dump());
    setenv("PATH", (place_->path() + ":" + before_).c_str(), 1);
  }
  ~ClusterOfScripts() override { setenv("PATH", before_.c_str(), 1); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(place_->path() + "/" + name) << text;
  }
  void Program(const std::string& name, const std::string& body) {
    Write(name, "#!/bin/sh\nhere='" + place_->path() + "'\n" + body);
    std::filesystem::permissions(place_->path() + "/" + name, std::filesystem::perms::owner_all);
  }
  Result<void> Measure(const std::string& state) {
    Write("state", state);
    const SlurmOptions options{"fullbore", place_->path(), {}};
    return MeasureOnSlurm(
        options, {SlurmTrial{}},
        {[] { return false; }, [](const std::string&) {}, [&](size_t, const Trial&) { ++measured_; }});
  }

  const std::string before_ = std::getenv("PATH") ? std::getenv("PATH") : "";
  Result<TemporaryDirectory> place_ = TemporaryDirectory::Make();
  int measured_ = 0;
};

TEST_F(ClusterOfScripts, AJobThatEndedWellIsWaitedForWhateverItPrinted) {
  const auto done = Measure("COMPLETED");
  ASSERT_TRUE(done.ok()) << done.error().text;
  EXPECT_EQ(measured_, 1);
}

TEST_F(ClusterOfScripts, AJobThatFailedSaysSoInTheWordsOfItsLog) {
  const auto done = Measure("FAILED");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().text, "job 7 ended as FAILED: a warning of some library");
}

}  // namespace
}  // namespace fullbore::tune
