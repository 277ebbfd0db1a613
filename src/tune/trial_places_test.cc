#include "tune/trial_places.h"

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
  ScratchDirectory scratch_;
  Variable home_{"HOME", scratch_ / "home"};
};

TEST_F(TrialPlacesTest, ACacheThatDoesNotExistYetCanBeFilled) {
  const auto places = TrialPlaces::Make("");
  ASSERT_TRUE(places);
  EXPECT_THAT(places->writable(), Contains(scratch_ / "home/.cache"));
  EXPECT_TRUE(fs::is_directory(scratch_ / "home/.cache"));
  EXPECT_THAT(places->Environment().at("FULLBORE_TRIAL_KEPT"), HasSubstr(scratch_ / "home/.cache"));
}

TEST_F(TrialPlacesTest, ACacheThatHoldsTheWorkingDirectoryIsNone) {
  const Variable models("HF_HOME", fs::current_path().parent_path().string() + "/");
  const Variable all("TORCH_HOME", "/");
  const auto places = TrialPlaces::Make("");
  ASSERT_TRUE(places);
  EXPECT_THAT(places->writable(), Not(Contains(fs::current_path().parent_path().string())));
  EXPECT_THAT(places->writable(), Not(Contains("")));
}

TEST_F(TrialPlacesTest, TemporaryFilesHaveShortNamesWhereTheUsualPlaceHasALongOne) {
  const std::string place = scratch_ / std::string(80, 'x');
  fs::create_directory(place);
  const Variable temporary("TMPDIR", place);
  std::string made;
  {
    const auto places = TrialPlaces::Make("");
    ASSERT_TRUE(places);
    made = places->Environment().at("TMPDIR");
    EXPECT_LE(made.size(), 64);
    EXPECT_TRUE(fs::is_directory(made));
    EXPECT_THAT(places->writable(), Contains(made));
  }
  EXPECT_FALSE(fs::exists(made));
  EXPECT_TRUE(fs::is_empty(place));
}

TEST_F(TrialPlacesTest, ALogIsMadeAndRemovedAgainIfNothingWasWritten) {
  const std::string log = scratch_ / "train.log";
  {
    const auto places = TrialPlaces::Make(log);
    ASSERT_TRUE(places);
    EXPECT_THAT(places->writable(), Contains(log));
    EXPECT_THAT(places->writable(), Not(Contains(scratch_.path())));
    EXPECT_TRUE(fs::exists(log));
  }
  EXPECT_FALSE(fs::exists(log));
}

TEST_F(TrialPlacesTest, ALogThatWasThereStays) {
  const std::string log = scratch_.Write("train.log", "");
  { ASSERT_TRUE(TrialPlaces::Make(log)); }
  EXPECT_TRUE(fs::exists(log));
}

}  // namespace
}  // namespace fullbore::tune
