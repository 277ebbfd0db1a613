#include <gmock/gmock.h>

#include "fleet/page/job_page.h"
#include "fleet/page/report_page.h"
#include "fleet/testing/sums_in.h"

namespace fullbore::fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHostile[] = "</script><script>owned=1</script>";

RunAccount ARun(const std::string& user, const std::string& change, int64_t given_ns = 7'200'000'000'000) {
  RunAccount run;
  run.id = "run-" + user + change;
  run.user = user;
  run.job = "4711";
  run.device = "cpu";
  run.devices = 1;
  run.begin_unix_ns = 1'700'000'000'000'000'000;
  run.end_unix_ns = run.begin_unix_ns + given_ns;
  run.given_ns = given_ns;
  run.ended = true;
  run.parts = {{Kind::kWork, "", given_ns / 2}, {Kind::kWaste, "input-bound", given_ns - given_ns / 2}};
  run.advice = {{"input-bound", "too-few-workers", "It waits for data.", change, 1.2, 1.5, 1.7, given_ns}};
  return run;
}

TEST(FleetPageTest, NamesAreDataAndNeverMarkup) {
  RunAccount run = ARun("anna", kHostile);
  run.job_name = run.id = kHostile;
  const std::string job = ToHtml(JobOf({run}));
  EXPECT_THAT(job, Not(HasSubstr(kHostile)));
  EXPECT_THAT(job, HasSubstr("Content-Security-Policy"));
  EXPECT_THAT(ToHtml(ReportOn(std::vector{run}, By::kUser), {}), Not(HasSubstr(kHostile)));
}

TEST(FleetPageTest, ALetterHasNothingAboutOthersAndThreeEdits) {
  std::vector<RunAccount> runs = {ARun("bob", "batch_size=64")};
  for (const char* change : {"num_workers=1", "num_workers=2", "num_workers=3", "num_workers=4"})
    runs.push_back(ARun("anna", change, 1'000'000'000'000 * (1 + change[12] - '0')));
  const std::string letter = ToHtml(ReportOn(runs, By::kUser, "anna"), {.user = "anna"});
  EXPECT_THAT(letter, Not(HasSubstr("bob")));
  EXPECT_THAT(letter, Not(HasSubstr("batch_size=64")));
  EXPECT_THAT(letter, HasSubstr("num_workers=4"));
  EXPECT_THAT(letter, HasSubstr("num_workers=2"));
  EXPECT_THAT(letter, Not(HasSubstr("num_workers=1"))) << "the fourth";
}

}  // namespace
}  // namespace fullbore::fleet
