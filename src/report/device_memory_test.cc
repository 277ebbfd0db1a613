#include "report/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/json.h"
#include "report/terminal.h"

namespace fullbore::report {
namespace {

using diagnose::Diagnosis;
using diagnose::MemoryPart;
using diagnose::MemoryWhatIf;
using ::testing::HasSubstr;
using ::testing::Not;

Diagnosis OnADevice() {
  Diagnosis diagnosis;
  diagnosis.memory = {0,
                      80e9,
                      {{"weights", 10e9, {}, {{"bfloat16", 8e9}, {"float32", 2e9}}},
                       {"states", 20e9, {{"exp_avg", 10e9}, {"exp_avg_sq", 10e9}}, {{"float32", 20e9}}},
                       {"activations", 30e9},
                       {"free", 20e9}}};
  return diagnosis;
}

MemoryWhatIf AnAnswer(double low, double high) {
  MemoryWhatIf answer;
  answer.change = "batch=64";
  answer.batch = "64 rows of 1,024 tokens";
  answer.seen = "32 rows of 1,024 tokens";
  answer.now = 60e9;
  answer.low = low, answer.expected = (low + high) / 2, answer.high = high;
  answer.total = 80e9;
  answer.sizes = 4;
  return answer;
}

TEST(DeviceMemoryTest, IsOneBarInTheTerminal) {
  EXPECT_THAT(
      ToTerminal(OnADevice(), {100, false, true}, {}),
      HasSubstr("  device memory 60 GB of 80 GB   █████▒▒▒▒▒▒▒▒▒▒░░░░░░░░░░░░░░░··········\n"
                "  █ weights 10 GB (bfloat16 8.0 GB, float32 2.0 GB)\n"
                "  ▒ optimizer states 20 GB (exp_avg 10 GB, exp_avg_sq 10 GB)   ░ activations 30 GB   "
                "· free 20 GB\n"));
}

TEST(DeviceMemoryTest, IsNotThereWithoutADevice) {
  EXPECT_THAT(ToTerminal(Diagnosis(), {100, false, true}, {}), Not(HasSubstr("device memory")));
}

TEST(DeviceMemoryTest, AnotherBatchFitsOrNotOrPerhaps) {
  EXPECT_EQ(
      MemoryWhatIfText(AnAnswer(70e9, 78e9)),
      "what if batch=64: 64 rows of 1,024 tokens take 74 GB (70 GB to 78 GB) of the device's 80 GB, which fits; "
      "32 rows of 1,024 tokens took 60 GB. By a line through the peaks of batches of 4 sizes");
  EXPECT_EQ(FitText(AnAnswer(81e9, 90e9)), "does not fit");
  EXPECT_EQ(FitText(AnAnswer(79e9, 90e9)), "may not fit");
}

TEST(DeviceMemoryTest, SaysThatItGuessesAndWhatIsMissing) {
  MemoryWhatIf answer = AnAnswer(70e9, 78e9);
  answer.assumes = "one size was seen";
  EXPECT_THAT(MemoryWhatIfText(answer), HasSubstr("It is a guess: one size was seen"));
  answer.missing = "it trained on the CPU";
  EXPECT_EQ(MemoryWhatIfText(answer), "what if batch=64: not known: it trained on the CPU");
}

TEST(DeviceMemoryTest, IsInTheJson) {
  Diagnosis diagnosis = OnADevice();
  diagnosis.memory_what_if = AnAnswer(70e9, 78e9);
  const auto json = ToJson(diagnosis);
  EXPECT_EQ(json["memory"]["parts"][1]["of"]["exp_avg"], 10e9);
  EXPECT_EQ(json["memory_what_if"]["verdict"], "fits");
  diagnosis.memory_what_if->missing = "nothing was recorded";
  EXPECT_EQ(ToJson(diagnosis)["memory_what_if"].size(), 2U);
}

}  // namespace
}  // namespace fullbore::report
