#include "cli/trials.h"

#include <gmock/gmock.h>

namespace fullbore::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(TrialFlagsTest, ARatioIsAPercentageOrANumberBelowOne) {
  EXPECT_EQ(*ParseRatio("--precision", "5%"), 0.05);
  EXPECT_EQ(*ParseRatio("--precision", " 0.05"), 0.05);
  for (const char* wrong : {"5", "0", "100%", "-1%", "", "%", "few"}) {
    const auto ratio = ParseRatio("--precision", wrong);
    ASSERT_FALSE(ratio.ok()) << wrong;
    EXPECT_THAT(ratio.error().text, StartsWith("--precision '"));
  }
}

TEST(TrialFlagsTest, ATimeHasToBeLongerThanNothing) {
  EXPECT_EQ(*ParsePositiveSeconds("--most", "2m"), 120);
  EXPECT_LT(*ParsePositiveSeconds("--most", "1e99d") * 1e9, 9.2e18) << "more than nanoseconds can count";
  for (const char* wrong : {"0", "-3s", "soon"})
    EXPECT_FALSE(ParsePositiveSeconds("--most", wrong).ok()) << wrong;
}

std::string Refused(const std::vector<std::string>& command, const std::string& name,
                    const nlohmann::json& value) {
  const auto checked = CheckSetting(command, name, value);
  return checked ? "" : checked.error().text + "; " + checked.error().hint;
}

TEST(CheckSettingTest, TakesKnobsAndWhatStandsInTheCommand) {
  EXPECT_EQ(Refused({"python", "train.py"}, "num_workers", 4), "");
  EXPECT_EQ(Refused({"python", "train.py", "--lr", "{lr}"}, "lr", "0.1"), "");
}

TEST(CheckSettingTest, RefusesWhatIsNeitherAndWhatCannotBe) {
  EXPECT_THAT(Refused({"python", "train.py"}, "lr", "0.1"), HasSubstr("{lr} is not in the command"));
  EXPECT_THAT(Refused({"python", "train.py"}, "num_worker", 4), HasSubstr("did you mean num_workers?"));
  EXPECT_THAT(Refused({"python", "train.py"}, "workers", 4), HasSubstr("did you mean num_workers?"));
  EXPECT_THAT(Refused({"python", "train.py"}, "bs", 4), HasSubstr("did you mean batch_size?"));
  EXPECT_THAT(Refused({"python", "train.py"}, "num_workers", -1), StartsWith("--set: num_workers=-1: "));
}

// A run may be somebody else's.
TEST(SettingsOfTagsTest, OfTheCommandsOwnOnlyPlainValuesAreTaken) {
  const std::vector<std::string> command = {"python", "train.py", "{lr}"};
  const auto plain = SettingsOfTags(
      command, {{"lr", "fast"}, {"num_workers", "2"}, {kTuneTag, "x"}, {kCompareTag, "candidate"}});
  ASSERT_TRUE(plain.ok()) << plain.error().text;
  EXPECT_EQ(*plain, (tune::Settings{{"lr", "fast"}, {"num_workers", 2}}));
  EXPECT_FALSE(SettingsOfTags(command, {{"lr", "$(rm -r .)"}}).ok());
  EXPECT_FALSE(SettingsOfTags(command, {{"num_workers", "many"}}).ok());
}

TEST(OptionsOfTest, SaysWhatIsMissing) {
  TrialFlags flags;
  const auto without_command = OptionsOf("measure", flags, {});
  ASSERT_FALSE(without_command.ok());
  EXPECT_EQ(without_command.error().text, "measure: no command");
  flags.log = "train.log";
  const auto without_metric = OptionsOf("measure", flags, {{"python", "train.py"}, true});
  ASSERT_FALSE(without_metric.ok());
  EXPECT_THAT(without_metric.error().hint, HasSubstr("--metric"));
}

TEST(OptionsOfTest, TakesTheFlagsOfAProgramThatTellsItsSpeed) {
  TrialFlags flags;
  flags.metric = "([0-9.]+) img/s";
  flags.precision = "5%";
  flags.most = "10s";
  const auto options = OptionsOf("measure", flags, {{"./train"}, true});
  ASSERT_TRUE(options.ok()) << options.error().text;
  EXPECT_EQ(options->precision.half_width, 0.05);
  EXPECT_EQ(options->precision.most_seconds, 10);
  EXPECT_EQ(options->command, std::vector<std::string>{"./train"});
}

}  // namespace
}  // namespace fullbore::cli
