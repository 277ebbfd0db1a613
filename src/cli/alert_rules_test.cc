#include "cli/alert_rules.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_directory.h"

namespace fullbore::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string RuleThatStarts(const std::string& program) {
  return "[[alert]]\nname = \"failed\"\nrun = \"failed\"\nnotify = [\"command:" + program + "\"]\n";
}

TEST(AlertRulesTest, TheWordDefaultMeansTheBuiltInOnes) {
  const auto rules = RulesNamed("default");
  ASSERT_TRUE(rules.ok());
  EXPECT_THAT(rules->rules, Not(IsEmpty()));
}

TEST(AlertRulesTest, ACommandThatCanBeRunIsTaken) {
  const ScratchDirectory directory;
  EXPECT_TRUE(RulesNamed(directory.Write("rules.toml", RuleThatStarts("/bin/true"))).ok());
}

TEST(AlertRulesTest, ACommandThatCannotBeRunIsSaidBeforeAnythingIsWatched) {
  const ScratchDirectory directory;
  const std::string no_program = directory.Write("page.txt", "call somebody");
  for (const std::string& program : {no_program, directory / "none"}) {
    const auto rules = RulesNamed(directory.Write("rules.toml", RuleThatStarts(program)));
    ASSERT_FALSE(rules.ok()) << program;
    EXPECT_THAT(rules.error().text, HasSubstr("alert 'failed': cannot run '" + program + "'"));
    EXPECT_THAT(rules.error().hint, HasSubstr("the path of a program"));
  }
}

}  // namespace
}  // namespace fullbore::cli
