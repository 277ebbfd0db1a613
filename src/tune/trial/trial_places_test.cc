#include "tune/trial/trial_places.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "base/testing/scratch_directory.h"

namespace fullbore::tune {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Puts a variable of the environment back.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

class TrialPlacesTest : public ::testing::Test {
 protected:
  TrialPlacesTest() { fs::create_directories(scratch_ / "home/.cache"); }
  Shelter Behind(isolate::Protection protection) const {
    Shelter shelter;
    shelter.found.protection = protection;
    shelter.place = scratch_.path();
    return shelter;
  }

  ScratchDirectory scratch_;
  Variable home_{"HOME", scratch_ / "home"};
  const Shelter guard_ = Behind(isolate::Protection::kGuard);
};

TEST_F(TrialPlacesTest, ACacheThatHoldsTheWorkingDirectoryIsNone) {
  const Variable models("HF_HOME", fs::current_path().parent_path().string() + "/");
  const Variable all("TORCH_HOME", "/");
  EXPECT_THAT(Caches(), testing::ElementsAre(scratch_ / "home/.cache"));
}

TEST_F(TrialPlacesTest, OfTwoCachesOfWhichOneHoldsTheOtherTheLargerCounts) {
  const std::string inner = scratch_.Write("home/.cache/huggingface/token", "");
  const Variable models("HF_HOME", fs::path(inner).parent_path());
  EXPECT_THAT(Caches(), testing::ElementsAre(scratch_ / "home/.cache"));
}

TEST_F(TrialPlacesTest, WhatTheCommandNamesIsReachedAsFarAsItExists) {
  fs::create_directories(scratch_ / "data/alice");
  const auto places = TrialPlaces::Make(Behind(isolate::Protection::kView), "");
  ASSERT_TRUE(places);
  const auto reached =
      places->Apart({"python", "--out=" + (scratch_ / "data/alice/run1/ckpt"), "-v"}).files.reached;
  EXPECT_THAT(reached, Contains(scratch_ / "data/alice"));
}

TEST_F(TrialPlacesTest, BehindAGuardCachesCanBeFilled) {
  const auto places = TrialPlaces::Make(guard_, "");
  ASSERT_TRUE(places);
  EXPECT_THAT(places->Apart({}).files.writable, Contains(scratch_ / "home/.cache"));
  EXPECT_THAT(places->Environment().at("FULLBORE_TRIAL_KEPT"), HasSubstr(scratch_ / "home/.cache"));
}

TEST_F(TrialPlacesTest, InAViewNothingIsRedirectedAndCachesOutliveATrial) {
  Shelter view = Behind(isolate::Protection::kView);
  view.caches = std::make_shared<isolate::Scratch>(isolate::Scratch::Make(scratch_.path()).value());
  const auto places = TrialPlaces::Make(view, scratch_ / "train.log");
  ASSERT_TRUE(places);
  EXPECT_FALSE(places->Environment().contains("FULLBORE_TRIAL_FILES"));
  EXPECT_FALSE(places->Environment().contains("TMPDIR"));
  EXPECT_EQ(places->Apart({}).files.outlive.at(scratch_ / "home/.cache"), view.caches->path() + "/0");
  EXPECT_FALSE(fs::exists(scratch_ / "train.log"));
}

TEST_F(TrialPlacesTest, TemporaryFilesHaveShortNamesWhereTheUsualPlaceHasALongOne) {
  const std::string place = scratch_ / std::string(80, 'x');
  fs::create_directory(place);
  Shelter shelter = guard_;
  shelter.place = place;
  std::string made;
  {
    const auto places = TrialPlaces::Make(shelter, "");
    ASSERT_TRUE(places);
    made = places->Environment().at("TMPDIR");
    EXPECT_LE(made.size(), 64);
    EXPECT_TRUE(fs::is_directory(made));
    EXPECT_THAT(places->Apart({}).files.writable, Contains(made));
  }
  EXPECT_FALSE(fs::exists(made));
  EXPECT_TRUE(fs::is_empty(place));
}

TEST_F(TrialPlacesTest, ALogIsMadeAndRemovedAgainIfNothingWasWritten) {
  const std::string log = scratch_ / "train.log";
  {
    const auto places = TrialPlaces::Make(guard_, log);
    ASSERT_TRUE(places);
    EXPECT_THAT(places->Apart({}).files.writable, Contains(log));
    EXPECT_THAT(places->Apart({}).files.writable, Not(Contains(scratch_.path())));
    EXPECT_TRUE(fs::exists(log));
  }
  EXPECT_FALSE(fs::exists(log));
}

TEST_F(TrialPlacesTest, ALogThatWasThereStays) {
  const std::string log = scratch_.Write("train.log", "");
  { ASSERT_TRUE(TrialPlaces::Make(guard_, log)); }
  EXPECT_TRUE(fs::exists(log));
}

}  // namespace
}  // namespace fullbore::tune
