#include "record/columns.h"

#include <gtest/gtest.h>

#include <limits>

#include "record/sketch.h"

namespace fullbore::record {
namespace {

TEST(ColumnsTest, ReadsBackWhatWasWrittenWithExtremesAndGaps) {
  const Column plain{{0, -1, 5, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), 7},
                     {}};
  const Column gaps{{1, 0, 3}, {true, false, true}};
  const auto back = DecodeColumns(EncodeColumns({plain, gaps, {}}));
  ASSERT_TRUE(back.ok());
  ASSERT_EQ(back->size(), 3u);
  EXPECT_EQ((*back)[0].values, plain.values);
  EXPECT_EQ((*back)[1].values, gaps.values);
  EXPECT_EQ((*back)[1].present, gaps.present);
  EXPECT_TRUE((*back)[2].values.empty());
}

TEST(ColumnsTest, SteadyReadingsTakeLessThanAByteEach) {
  Column column;
  for (int i = 0; i < 10'000; ++i) column.values.push_back(500 + (i * 7) % 5);
  EXPECT_LT(EncodeColumns({column}).size(), 10'000u);
}

TEST(ColumnsTest, EveryTruncationIsAnErrorNotACrash) {
  const std::string bytes = EncodeColumns({{{1, 2, 3, 1000}, {}}, {{5, 0}, {true, false}}});
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeColumns(bytes.substr(0, length)).ok()) << length;
  }
}

TEST(ColumnsTest, EveryFlippedByteIsAnErrorOrOtherValuesNotACrash) {
  const std::string bytes = EncodeColumns({{{1, 2, 3, 1000}, {}}, {{5, 0}, {true, false}}});
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    const auto back = DecodeColumns(damaged);
    EXPECT_TRUE(back.ok() || back.error().code == ErrorCode::kCorrupt);
  }
}

TEST(SketchTest, QuantilesAreWithinOnePercent) {
  Sketch sketch;
  for (int i = 1; i <= 10'000; ++i) sketch.Add(i);
  for (const double q : {0.01, 0.5, 0.95, 0.99}) {
    EXPECT_NEAR(sketch.Quantile(q), 10'000 * q, 10'000 * q * 0.011);
  }
  EXPECT_EQ(sketch.max(), 10'000);
  EXPECT_DOUBLE_EQ(sketch.mean(), 5000.5);
}

TEST(SketchTest, AMergedSketchHoldsTheValuesOfBoth) {
  Sketch all, left, right;
  for (int i = 0; i < 1000; ++i) {
    all.Add(i);
    (i % 3 ? left : right).Add(i);
  }
  left.Merge(right);
  EXPECT_EQ(left.count(), all.count());
  EXPECT_EQ(left.Quantile(0.9), all.Quantile(0.9));
}

TEST(SketchTest, SurvivesEncoding) {
  Sketch sketch;
  sketch.Add(0);
  sketch.Add(42, 3);
  const auto back = Sketch::Decode(sketch.Encode());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->count(), 4u);
  EXPECT_EQ(back->sum(), 126);
  EXPECT_EQ(back->Quantile(1), sketch.Quantile(1));
}

}  // namespace
}  // namespace fullbore::record
