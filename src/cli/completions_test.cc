#include "cli/completions.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

#include "base/testing/scratch_directory.h"
#include "cli/subcommand.h"

namespace fullbore::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;

class CompletionsTest : public testing::Test {
 protected:
  CompletionsTest() {
    for (const Subcommand* command : AllSubcommands())
      (void)command->define(*app_.add_subcommand(command->name, command->summary), invocation_);
  }

  std::vector<std::string> Of(const std::vector<std::string>& words) {
    std::vector<std::string> found;
    for (const Candidate& each : CompletionsOf(app_, words).candidates) found.push_back(each.word);
    return found;
  }
  Paths PathsOf(const std::vector<std::string>& words) { return CompletionsOf(app_, words).paths; }

  CLI::App app_;
  Invocation invocation_;
};

TEST_F(CompletionsTest, TheFirstWordIsASubcommand) {
  EXPECT_THAT(Of({"expl"}), ElementsAre("explain"));
  EXPECT_THAT(Of({""}), IsSupersetOf({"run", "explain", "completion"}));
  EXPECT_THAT(Of({"loader", "be"}), ElementsAre("bench"));
  EXPECT_THAT(Of({"fleet", "report", "--by", ""}), IsSupersetOf({"user", "device"}));
  EXPECT_THAT(Of({"plan", "--by", ""}), IsEmpty()) << "which is a time";
}

TEST_F(CompletionsTest, OptionsAreThoseOfTheSubcommand) {
  EXPECT_THAT(Of({"run", "--fast"}), ElementsAre("--fast-data"));
  EXPECT_THAT(Of({"runs", "--fast"}), IsEmpty());
  EXPECT_THAT(Of({"loader", "bench", "--image"}), ElementsAre("--image-size"));
}

TEST_F(CompletionsTest, WhereNothingElseMayStandOptionsAreShown) {
  EXPECT_THAT(Of({"run", ""}), Contains("--name"));
}

TEST_F(CompletionsTest, FindingsSectionsChangesAndSettingsAreNamed) {
  EXPECT_THAT(Of({"help", "inp"}), ElementsAre("input-bound"));
  EXPECT_THAT(Of({"explain", "--section", "kernel"}), ElementsAre("kernel-types", "kernels"));
  EXPECT_THAT(Of({"explain", "--what-if", "no-s"}), ElementsAre("no-sync"));
  EXPECT_THAT(Of({"explain", "--what-if", "device=NVIDIA H2"}),
              ElementsAre("device=NVIDIA H200 SXM", "device=NVIDIA H200 NVL"));
  EXPECT_THAT(Of({"measure", "--set", "num"}), ElementsAre("num_workers="));
  EXPECT_THAT(Of({"completion", "z"}), ElementsAre("zsh"));
}

TEST_F(CompletionsTest, OfAListTheLastIsCompleted) {
  EXPECT_THAT(Of({"explain", "--what-if", "graphs,no-s"}), ElementsAre("graphs,no-sync"));
}

TEST_F(CompletionsTest, AValueMayFollowAnEqualsSign) {
  EXPECT_THAT(Of({"explain", "--section=kernels", ""}), Contains("last"));
  EXPECT_THAT(Of({"tune", "--objective=th"}), ElementsAre("--objective=throughput"));
}

TEST_F(CompletionsTest, FilesAndDirectoriesAreLeftToTheShell) {
  EXPECT_EQ(PathsOf({"explain", "--json", ""}), Paths::kFiles);
  EXPECT_EQ(PathsOf({"run", "-o", ""}), Paths::kDirectories);
  EXPECT_EQ(PathsOf({"run", "--name", ""}), Paths::kNone);
  EXPECT_EQ(PathsOf({"explain", "trace"}), Paths::kFiles);
}

TEST_F(CompletionsTest, RunsComeFromTheDirectoryThatIsNamedAndByAPartOfTheirIds) {
  const ScratchDirectory runs;
  for (const std::string id : {"2026-11-01-0900-first", "2026-11-02-0900-second"})
    runs.Write(id + ".fbr", "run");
  EXPECT_THAT(Of({"explain", "-o", runs.path(), "2026-11-02"}), ElementsAre("2026-11-02-0900-second"));
  EXPECT_THAT(Of({"explain", "-o", runs.path(), "first"}), ElementsAre("2026-11-01-0900-first"));
  EXPECT_THAT(Of({"explain", "-o", runs.path(), "la"}), ElementsAre("last"));
  EXPECT_THAT(Of({"compare", "-o", runs.path(), "last", "2026-11-01"}), ElementsAre("2026-11-01-0900-first"));
  EXPECT_THAT(Of({"explain", "-o", runs.path(), "0900"}), IsEmpty()) << "which of the two?";
}

TEST_F(CompletionsTest, ADescriptionIsOneShortLine) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{""}, {"run", "--"}, {"explain", "--section", ""}, {"help", ""}}) {
    for (const Candidate& each : CompletionsOf(app_, words).candidates) {
      EXPECT_LE(each.what.size(), 75u) << each.word;
      EXPECT_EQ(each.what.find('\n'), std::string::npos) << each.word;
    }
  }
}

}  // namespace
}  // namespace fullbore::cli
