#include "cli/man_pages.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/example_first.h"

namespace fullbore::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class ManPageTest : public testing::Test {
 protected:
  ManPageTest() {
    sub_->formatter(std::make_shared<ExampleFirst>("fullbore loader --fast \\d+"));
    sub_->add_option("--count", count_, "How many\n.TH of them:\none    1\ntwo    2")->type_name("N");
    sub_->add_option("PATH", path_, "Where")->required();
  }
  std::string Page() const { return ManPageOf(*sub_, "2026-11-29"); }

  int count_ = 0;
  std::string path_;
  CLI::App app_{"Finds the narrowest pipe.\n\nfullbore run"};
  CLI::App* sub_ = app_.add_subcommand("loader", "Loads - fast");
};

TEST_F(ManPageTest, BeginsWithNameAndSynopsis) {
  EXPECT_THAT(Page(), HasSubstr(".TH FULLBORE\\-LOADER 1 2026-11-29 fullbore"));
  EXPECT_THAT(Page(), HasSubstr("fullbore\\-loader \\- Loads \\- fast\n"));
  EXPECT_THAT(Page(), HasSubstr("\\fBfullbore loader\\fR [\\fIOPTIONS\\fR] \\fIPATH\\fR\n"));
}

TEST_F(ManPageTest, TextIsNoRequestOfTroff) {
  EXPECT_THAT(Page(), HasSubstr("\n\\&.TH of them:\n"));
  EXPECT_THAT(Page(), HasSubstr("fullbore loader \\-\\-fast \\ed+\n"));
}

TEST_F(ManPageTest, RowsOfATableKeepTheirLines) {
  EXPECT_THAT(Page(), HasSubstr(".nf\none    1\ntwo    2\n.fi\n"));
}

TEST_F(ManPageTest, AnOptionNamesItsValue) {
  EXPECT_THAT(Page(), HasSubstr(".TP\n\\fB\\-\\-count\\fR \\fIN\\fR\nHow many\n"));
}

TEST_F(ManPageTest, ThePageOfTheProgramNamesThoseOfItsCommands) {
  const std::string page = ManPageOf(app_, "2026-11-29");
  EXPECT_THAT(page, HasSubstr("fullbore \\- Finds the narrowest pipe.\n"));
  EXPECT_THAT(page, HasSubstr("\\fBfullbore\\-loader\\fR(1)\nLoads \\- fast\n"));
  EXPECT_THAT(page, Not(HasSubstr(".SH ARGUMENTS")));
}

}  // namespace
}  // namespace fullbore::cli
