#include "tune/answer/patch.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"
#include "tune/answer/script_arguments.h"

// Which arguments are found in which scripts is tested in tests/tune/test_patch_script.py.
namespace fullbore::tune {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(PatchTest, ChangesTheArgumentsThatStandInTheCall) {
  EXPECT_EQ(
      PatchOf("a\nb\nc\nd\nx = DataLoader(\n    data, num_workers=0,\n    batch_size=n,\n)\ne\n", "train.py",
              5, {{"num_workers", 4}, {"batch_size", 64}}),
      "--- a/train.py\n+++ b/train.py\n@@ -3,7 +3,7 @@\n c\n d\n x = DataLoader(\n-    data, num_workers=0,\n"
      "+    data, num_workers=4,\n     batch_size=n,\n )\n e\n");
}

TEST(PatchTest, LeavesOtherNamesAndOtherCallsAlone) {
  EXPECT_EQ(PatchOf("f(num_workers=0)\ng(my_num_workers=0)\n", "t.py", 2, {{"num_workers", 4}}), "");
  EXPECT_EQ(PatchOf("f(num_workers=args.workers)\n", "t.py", 1, {{"num_workers", 4}}), "");
  EXPECT_EQ(PatchOf("f(num_workers=0 + extra)\n", "t.py", 1, {{"num_workers", 4}}), "");
  EXPECT_EQ(PatchOf("f(num_workers=0)\n", "t.py", 7, {{"num_workers", 4}}), "");
}

TEST(PatchTest, WritesPythonsWordsAndKeepsAMissingEndOfLine) {
  EXPECT_EQ(PatchOf("f(pin_memory=False)", "t.py", 1, {{"pin_memory", true}}),
            "--- a/t.py\n+++ b/t.py\n@@ -1,1 +1,1 @@\n-f(pin_memory=False)\n\\ No newline at end of file\n"
            "+f(pin_memory=True)\n\\ No newline at end of file\n");
}

TEST(PatchTest, ChangesFarApartAreHunksOfTheirOwn) {
  std::string text = "N = 0\n";
  for (int i = 2; i < 20; ++i) text += "pass\n";
  text += "DataLoader(data, 8, num_workers=N)\n";
  const std::string diff = PatchOf(text, "t.py", 20, {{"num_workers", 4}, {"batch_size", 16}});
  EXPECT_THAT(diff, StartsWith("--- a/t.py\n+++ b/t.py\n@@ -1,4 +1,4 @@\n-N = 0\n+N = 4\n pass\n"));
  EXPECT_THAT(diff, EndsWith("@@ -17,4 +17,4 @@\n pass\n pass\n pass\n-DataLoader(data, 8, num_workers=N)\n"
                             "+DataLoader(data, 16, num_workers=N)\n"));
}

TEST(PatchTest, AFileNameIsWrittenSoThatItIsNotTakenApart) {
  const auto head = [](const std::string& name) {
    const std::string diff = PatchOf("DataLoader(num_workers=0)", name, 1, {{"num_workers", 4}});
    return diff.substr(0, diff.find("@@"));
  };
  EXPECT_EQ(head("my train.py"), "--- a/my train.py\t\n+++ b/my train.py\t\n");
  EXPECT_EQ(head("a\n+++ b/x\".py"), "--- \"a/a\\012+++ b/x\\\".py\"\n+++ \"b/a\\012+++ b/x\\\".py\"\n");
}

TEST(PatchTest, SaysWhichLineToChangeByHandAndWhy) {
  std::vector<std::string> by_hand;
  const std::string_view text = "N = 0\nN = 2\nDataLoader(num_workers=N)\n";
  EXPECT_EQ(PatchOf(text, "t.py", 3, {{"num_workers", 4}}, {}, &by_hand), "");
  EXPECT_THAT(by_hand, ElementsAre("num_workers=4: t.py:2: `N` is assigned 2 times"));
}

TEST(PatchTest, IsSilentOnWhatIsNoArgumentOfALoader) {
  std::vector<std::string> by_hand;
  const Settings settings = {{"precision", "bf16"}, {"tf32", true}};
  EXPECT_EQ(PatchOf("DataLoader(precision=0)\n", "t.py", 1, settings, {}, &by_hand), "");
  EXPECT_THAT(by_hand, IsEmpty());
}

TEST(PatchTest, SaysWhereAScriptCannotBeParsed) {
  std::vector<std::string> by_hand;
  EXPECT_EQ(PatchOf("DataLoader(num_workers=0\n", "t.py", 1, {{"num_workers", 4}}, {}, &by_hand), "");
  ASSERT_EQ(by_hand.size(), 1u);
  EXPECT_THAT(by_hand[0], HasSubstr("cannot parse it: SyntaxError"));
}

TEST(PatchTest, RunsNoCodeThatLiesAboutForPython) {
  const auto directory = TemporaryDirectory::Make();
  ASSERT_TRUE(directory);
  const std::string ran = directory->path() + "/ran";
  for (const char* module : {"ast.py", "json.py", "script_names.py", "sitecustomize.py", "usercustomize.py"})
    std::ofstream(directory->path() + "/" + module) << "open('" << ran << "', 'w')\n";
  const std::string before = getenv("PYTHONPATH") ? getenv("PYTHONPATH") : "";
  setenv("PYTHONPATH", directory->path().c_str(), 1);
  const std::string text = "open('" + ran + "', 'w'); DataLoader(num_workers=0)";
  EXPECT_NE(PatchOf(text, "t.py", 1, {{"num_workers", 4}}), "");
  before.empty() ? unsetenv("PYTHONPATH") : setenv("PYTHONPATH", before.c_str(), 1);
  EXPECT_FALSE(std::filesystem::exists(ran));
}

TEST(PythonsOfTest, AreThatOfTheCommandAndThenThoseOfThePath) {
  EXPECT_THAT(PythonsOf({"python", "train.py"}), ElementsAre("python", "python3"));
  EXPECT_THAT(PythonsOf({"/v/bin/python3.11", "-u", "train.py"}),
              ElementsAre("/v/bin/python3.11", "python3", "python"));
  EXPECT_THAT(PythonsOf({"env", "PYTHON=/x/python", "python3", "t.py"}), ElementsAre("python3", "python"));
  EXPECT_THAT(PythonsOf({"uv", "run", "t.py", "/x/python"}), ElementsAre("python3", "python"));
  EXPECT_THAT(PythonsOf({"/x/python-config"}), ElementsAre("python3", "python"));
}

TEST(PythonsOfTest, AreThatOfALauncherWhichIsAScript) {
  const auto directory = TemporaryDirectory::Make();
  ASSERT_TRUE(directory);
  const std::string launcher = directory->path() + "/torchrun";
  std::ofstream(launcher) << "#!/venv/bin/python3 -E\nimport torch\n";
  EXPECT_THAT(PythonsOf({launcher, "--nproc-per-node=2", "train.py"}),
              ElementsAre("/venv/bin/python3", "python3", "python"));
}

}  // namespace
}  // namespace fullbore::tune
