#include "cli/sections.h"

#include <gmock/gmock.h>

#include "cli/subcommand.h"

namespace fullbore::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

std::string Refused(const SectionFlags& flags) {
  CaptureStderr();
  EXPECT_EQ(ExplainSections({"/there-is/no-such-trace"}, flags), kExitUsage);
  return GetCapturedStderr();
}

SectionFlags Flags(const std::vector<std::string>& names) {
  SectionFlags flags;
  flags.names = names;
  return flags;
}

TEST(SectionsTest, EachIsListedWithWhatItSaysAndAllComesLast) {
  EXPECT_THAT(ListOfSections(), HasSubstr("  idle-breakdown "));
  EXPECT_THAT(ListOfSections(), EndsWith("all of them"));
  EXPECT_THAT(NamesOfSections(), HasSubstr("idle-breakdown, "));
  EXPECT_THAT(NamesOfSections(), EndsWith(", and all"));
}

TEST(SectionsTest, AMisspeltNameIsRecognisedBeforeTheTraceIsRead) {
  EXPECT_THAT(Refused(Flags({"idle-brakdown"})), HasSubstr("did you mean --section idle-breakdown?"));
  EXPECT_THAT(Refused(Flags({"weather"})), HasSubstr("the sections are "));
}

TEST(SectionsTest, ACsvFileHoldsOneSection) {
  SectionFlags flags = Flags({"idle-breakdown", "all"});
  flags.csv.path = "out.csv";
  EXPECT_THAT(Refused(flags), HasSubstr("--csv holds one section, not "));
}

}  // namespace
}  // namespace fullbore::cli
