#include "cli/help_layout.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace fullbore::cli {
namespace {

using testing::ElementsAre;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : Split(std::string_view(text), '\n')) lines.emplace_back(line);
  return lines;
}

constexpr char kEntry[] =
    "  --most TIME                 The longest that a trial is measured, in seconds or minutes";

TEST(HelpLayoutTest, BreaksADescriptionBelowItsOwnBeginning) {
  EXPECT_THAT(Lines(HelpInColumns(kEntry, 60)),
              ElementsAre("  --most TIME                 The longest that a trial is",
                          "                              measured, in seconds or",
                          "                              minutes"));
}

TEST(HelpLayoutTest, LeavesALineThatFitsAsItIs) { EXPECT_EQ(HelpInColumns(kEntry, 100), kEntry); }

TEST(HelpLayoutTest, JoinsWhatWasBrokenForAnotherWidth) {
  EXPECT_EQ(HelpInColumns("  --on slurm  Where trials run\n              instead of here", 80),
            "  --on slurm  Where trials run instead of here");
}

TEST(HelpLayoutTest, BeginsOnTheNextLineWhereANameLeavesTooLittleRoom) {
  EXPECT_THAT(Lines(HelpInColumns("  --a-name-of-many-words VALUE  What it is for", 40)),
              ElementsAre("  --a-name-of-many-words VALUE", "      What it is for"));
}

TEST(HelpLayoutTest, KeepsEmptyLinesAndProse) {
  EXPECT_EQ(HelpInColumns("Usage: fullbore\n\nWhat it does", 80), "Usage: fullbore\n\nWhat it does");
}

}  // namespace
}  // namespace fullbore::cli
