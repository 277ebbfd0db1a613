#include "fleet/exemptions.h"

#include <gmock/gmock.h>

namespace fullbore::fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ExemptionsTest, RulesAreRead) {
  const auto rules = ParseExemptions(R"(
[[exempt]]
partition = "interactive"
why = "people think there"

[[exempt]]
user = "anna"
command = "jupyter"
why = "a notebook"
)",
                                     "exempt.toml");
  ASSERT_TRUE(rules.ok()) << ToString(rules.error());
  ASSERT_THAT(*rules, SizeIs(2));
  EXPECT_EQ((*rules)[0].partition, "interactive");
  EXPECT_EQ((*rules)[1].command, "jupyter");
  EXPECT_EQ((*rules)[1].user, "anna");
}

TEST(ExemptionsTest, AFileWithoutRulesExemptsNobody) {
  EXPECT_THAT(*ParseExemptions("# nothing yet\n", "exempt.toml"), SizeIs(0));
}

TEST(ExemptionsTest, WhatIsWrongIsSaidWithItsLine) {
  const std::pair<const char*, const char*> wrong[] = {
      {"[[exempt]]\nwhy = \"all\"\n", "exempt.toml:1: exempt: it applies to everything"},
      {"[[exempt]]\nuser = \"anna\"\n", "exempt.toml:1: exempt: why is missing"},
      {"[[exempt]]\nuser = \"anna\"\nwhy = \"\"\n", "exempt.toml:3: exempt: why is empty"},
      {"[[exempt]]\nusr = \"anna\"\nuser = \"a\"\nwhy = \"x\"\n",
       "exempt.toml:2: exempt: the key 'usr' is unknown"},
      {"[exempt]\nuser = \"anna\"\n", "exempt is not a list"},
      {"[[exempt]\n", "exempt.toml:1: "},
      {"[[exempt]]\nwhy = \"x\"\ncommand = \"0123456789012345678901234567890123456789x\"\n",
       "more than 40 bytes"}};
  for (const auto& [text, said] : wrong) {
    const auto rules = ParseExemptions(text, "exempt.toml");
    ASSERT_FALSE(rules.ok()) << text;
    EXPECT_THAT(rules.error().text, HasSubstr(said));
  }
}

}  // namespace
}  // namespace fullbore::fleet
