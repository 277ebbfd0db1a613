#include "cli/peers.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "cli/subcommand.h"
#include "explain/replay/change/change.h"
#include "tune/knob/knob.h"

namespace fullbore::cli {
namespace {

std::vector<std::string> WordsOf(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string_view word : Words(line)) words.emplace_back(word);
  return words;
}

std::string Meant(std::string_view line, std::string_view command = "") {
  return CommandLineMeant(WordsOf(line), WordsOf(command)).value_or("");
}

TEST(CommandLineMeantTest, ACommandWithoutRunIsRun) {
  EXPECT_EQ(Meant("python train.py --lr 0.1"), "fullbore run -- python train.py --lr 0.1");
  EXPECT_EQ(Meant("python3.12 -m train"), "fullbore run -- python3.12 -m train");
  EXPECT_EQ(Meant("torchrun --nproc-per-node=2 train.py"),
            "fullbore run -- torchrun --nproc-per-node=2 train.py");
}

TEST(CommandLineMeantTest, AScriptIsGivenToItsInterpreter) {
  EXPECT_EQ(Meant("train.py"), "fullbore run -- python train.py");
  EXPECT_EQ(Meant("./no-program.py"), "fullbore run -- python ./no-program.py");
  EXPECT_EQ(Meant("train.sh"), "fullbore run -- sh train.sh");
}

TEST(CommandLineMeantTest, ARecordingIsExplained) {
  EXPECT_EQ(Meant("trace.json.gz"), "fullbore explain trace.json.gz");
  EXPECT_EQ(Meant("report.sqlite"), "fullbore explain report.sqlite");
}

TEST(CommandLineMeantTest, WordsOfOtherToolsAreTranslatedWithWhatFollowsThem) {
  EXPECT_EQ(Meant("report last"), "fullbore explain last");
  EXPECT_EQ(Meant("analyze a.json b.json"), "fullbore explain a.json b.json");
  EXPECT_EQ(Meant("dump --pid 4711"), "fullbore explain --pid 4711");
  EXPECT_EQ(Meant("watch"), "fullbore top");
  EXPECT_EQ(Meant("monitor --interval 1"), "fullbore top");
  EXPECT_EQ(Meant("ls"), "fullbore runs");
}

TEST(CommandLineMeantTest, ACommandBehindThemIsRunWithoutTheirOptions) {
  EXPECT_EQ(Meant("profile"), "fullbore run -- python train.py");
  EXPECT_EQ(Meant("profile --trace=cuda -o out python train.py"), "fullbore run -- python train.py");
  EXPECT_EQ(Meant("record", "python train.py"), "fullbore run -- python train.py");
  EXPECT_EQ(Meant("monitor python train.py"), "fullbore run -- python train.py");
  EXPECT_EQ(Meant("autotune train.py"), "fullbore tune -- python train.py");
}

TEST(CommandLineMeantTest, OtherWordsHaveNoGuess) {
  EXPECT_EQ(Meant("frobnicate"), "");
  EXPECT_EQ(Meant("explian last"), "");
}

TEST(CommandLineMeantTest, SecretsAreMasked) {
  EXPECT_EQ(Meant("python train.py --api-key abc").find("abc"), std::string::npos);
}

TEST(WithSeparatorTest, StandsBeforeTheCommandThatWasLeftOver) {
  EXPECT_EQ(WithSeparator(WordsOf("run -q python train.py"), {"train.py", "python"}),
            "fullbore run -q -- python train.py");
  EXPECT_EQ(WithSeparator(WordsOf("tune train.py"), {"train.py"}), "fullbore tune -- python train.py");
}

TEST(WithSeparatorTest, HasNoPlaceWhereNoCommandIsLeftOver) {
  EXPECT_EQ(WithSeparator(WordsOf("run --name python"), {}), std::nullopt);
  EXPECT_EQ(WithSeparator(WordsOf("run nothing"), {"nothing"}), std::nullopt);
  EXPECT_EQ(WithSeparator(WordsOf("explain python"), {"python"}), std::nullopt);
}

TEST(PeersTest, EveryTranslationIsOneOfOurs) {
  for (const char* theirs : {"amp", "bs", "dataloader_num_workers", "omp_num_threads"})
    EXPECT_NE(tune::KnobNamed(SettingOfPeers(theirs).value_or("")), nullptr) << theirs;
  for (const char* theirs : {"amp", "cuda-graphs", "num_workers", "gc"})
    EXPECT_NE(replay::ChangeNamed(ChangeOfPeers(theirs).value_or("")), nullptr) << theirs;
  EXPECT_EQ(SettingOfPeers("lr"), std::nullopt);
}

TEST(PeersTest, NoWordOfOursIsTranslated) {
  for (const Subcommand* command : AllSubcommands()) EXPECT_EQ(Meant(command->name), "") << command->name;
}

}  // namespace
}  // namespace fullbore::cli
