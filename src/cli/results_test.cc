#include "cli/results.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_directory.h"
#include "explain/analyze/section.h"

namespace fullbore::cli {
namespace {

using testing::HasSubstr;

class ResultsTest : public testing::Test {
 protected:
  ResultFile Json(const std::string& path) const {
    ResultFile file("--json", kJsonResult);
    file.path = path;
    return file;
  }
  ScratchDirectory directory_;
};

TEST_F(ResultsTest, ARunIsNoNameForAResult) {
  directory_.Write("2026-11-20-train.fbr", "");
  for (const std::string& name : {std::string("last"), std::string("2026-11-20-train")}) {
    ResultFile json = Json(name);
    const auto judged = JudgeResults({&json}, {}, false, directory_.path());
    ASSERT_FALSE(judged.ok()) << name;
    EXPECT_THAT(judged.error().text, HasSubstr("--json takes a file to write, and '" + name + "' is "));
    EXPECT_THAT(judged.error().hint, HasSubstr("--json - writes to standard output"));
  }
}

TEST_F(ResultsTest, TwoResultsAreTwoFiles) {
  ResultFile json = Json(directory_ / "report"), html("--html", kHtmlResult);
  html.path = json.path;
  const auto judged = JudgeResults({&json, &html}, {}, false);
  ASSERT_FALSE(judged.ok());
  EXPECT_THAT(judged.error().text, HasSubstr("--json and --html would both write to "));
}

TEST_F(ResultsTest, AnInputIsNeverReplaced) {
  const std::string script = directory_.Write("train.py", "print(1)\n");
  InputFiles inputs;
  inputs.Add(script);
  ResultFile json = Json(script);
  EXPECT_FALSE(JudgeResults({&json}, inputs, false).ok());
  EXPECT_FALSE(JudgeResults({&json}, inputs, /*force=*/true).ok());
}

TEST_F(ResultsTest, AnotherFileIsReplacedOnlyByForce) {
  ResultFile json = Json(directory_.Write("notes.txt", "mine\n"));
  EXPECT_FALSE(JudgeResults({&json}, {}, false).ok());
  EXPECT_TRUE(JudgeResults({&json}, {}, true).ok());
}

TEST_F(ResultsTest, ATableIsKnownByItsHeading) {
  const auto& columns = analyze::AllSections().front()->columns;
  EXPECT_TRUE(kCsvResult.is_ours(analyze::CsvHeader(columns) + "1,2\n"));
  EXPECT_FALSE(kCsvResult.is_ours("name,age\nme,7\n"));
}

}  // namespace
}  // namespace fullbore::cli
