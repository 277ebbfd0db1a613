#include "loader/bench/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fullbore::loader::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr PlotStyle kPlain = {100, false, true};

Flow Measured() {
  Flow flow;
  flow.path = "photos";
  flow.samples = 2000;
  flow.used_samples = 2000;
  flow.bytes_per_sample = 93'000;
  flow.row = "3x224x224 float32";
  flow.batch_size = 64;
  flow.cores = 2;
  flow.points = {{1, 1000, {{"read", 20}, {"decode", 800}}}, {2, 2000, {{"read", 20}, {"decode", 840}}}};
  flow.readings = {{16, true, 3000, 2.8e8}, {2, false, 40'000, 4e9}};
  return flow;
}

TEST(PlotTest, ABarIsAsLongAsItsShareInEighthsOfACell) {
  EXPECT_EQ(Bar(1, 3, kPlain), "███");
  EXPECT_EQ(Bar(0.5, 3, kPlain), "█▌");
  EXPECT_EQ(Bar(0, 3, kPlain), "");
  EXPECT_EQ(Bar(7, 2, kPlain), "██");  // no wider than its place
  EXPECT_EQ(Bar(0.5, 4, {100, false, false}), "##");
}

TEST(PlotTest, TheTerminalShowsRatesStagesReadingsAndTheVerdict) {
  const std::string text = ToTerminal(Measured(), 1500, kPlain);
  EXPECT_THAT(text, HasSubstr("2,000 samples of 93 kB -> 3x224x224 float32, batches of 64, 2 cores"));
  EXPECT_THAT(text, HasSubstr("threads    samples/s       read     decode"));
  EXPECT_THAT(text, HasSubstr("reading alone, not in memory: 3,000 samples/s (280 MB/s) with 16 readers"));
  EXPECT_THAT(text, HasSubstr("decode binds"));
  EXPECT_THAT(text, HasSubstr("1,500 samples/s take 2 threads"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(PlotTest, ColoursAreForTerminals) {
  EXPECT_THAT(ToTerminal(Measured(), 0, {100, true, true}), HasSubstr("\x1b[36m█"));
}

TEST(PlotTest, TheFastestBarFillsItsPlaceAndNoLineIsWiderThanTheScreen) {
  const std::string text = ToTerminal(Measured(), 0, {80, false, false});
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    if (line.find('#') != std::string::npos) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
}

TEST(PlotTest, TorchSharesTheScaleAndIsComparedWithItsBest) {
  Flow flow = Measured();
  flow.torch = {{0, 400}, {2, 800}};
  flow.torch_versions = "torch 2.13.0";
  const std::string text = ToTerminal(flow, 0, kPlain);
  EXPECT_THAT(text, HasSubstr("PyTorch's DataLoader (torch 2.13.0)"));
  EXPECT_THAT(text, HasSubstr("fullbore.data reaches 2.5 times its best"));
}

TEST(PlotTest, AnInterruptedMeasurementSaysSoAndShowsWhatThereIs) {
  Flow flow = Measured();
  flow.points.pop_back();
  flow.interrupted = true;
  flow.notes = {"reading from the disk was not measured: memory"};
  const std::string text = ToTerminal(flow, 0, kPlain);
  EXPECT_THAT(text, HasSubstr("interrupted"));
  EXPECT_THAT(text, HasSubstr("note: reading from the disk"));
  EXPECT_THAT(text, HasSubstr("1,000"));
  Flow nothing;
  nothing.interrupted = true;
  EXPECT_THAT(ToTerminal(nothing, 500, kPlain), AllOf(HasSubstr("interrupted"), Not(HasSubstr("->"))));
}

}  // namespace
}  // namespace fullbore::loader::bench
