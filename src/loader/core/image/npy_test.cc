#include "loader/core/image/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loader/core/image/test_images.h"

namespace fullbore::loader::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Bytes Corpus(const std::string& name) { return ReadFile(CorpusDirectory() + "/files/" + name); }

TEST(NpyTest, DataPointsIntoTheBytesGiven) {
  const Bytes bytes = Corpus("float32.npy");
  const auto array = ParseNpy(bytes);
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(array->dtype, DType::kFloat32);
  EXPECT_THAT(array->shape, ElementsAre(2, 3));
  EXPECT_EQ(array->data.size(), 24U);
  EXPECT_EQ(array->data.data() + array->data.size(), bytes.data() + bytes.size());
}

TEST(NpyTest, AnyTruncationIsCorrupt) {
  for (const char* name : {"float64.npy", "version_3.npy", "scalar.npy"}) {
    const Bytes bytes = Corpus(name);
    for (size_t size = 0; size < bytes.size(); ++size) {
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      const auto array = ParseNpy(cut);
      ASSERT_FALSE(array.ok()) << name << " cut at " << size;
      EXPECT_EQ(array.error().code, ErrorCode::kCorrupt);
      EXPECT_THAT(array.error().text, HasSubstr(std::to_string(size)));
    }
  }
}

TEST(NpyTest, AnArrayWithoutElementsNeedsNoData) {
  const std::string header =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9999999999, 9999999999)}\n";
  Bytes bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<uint8_t>(header.size()), 0};
  bytes.insert(bytes.end(), header.begin(), header.end());
  const auto array = ParseNpy(bytes);
  ASSERT_TRUE(array.ok()) << array.error().text;
  EXPECT_TRUE(array->data.empty());
}

}  // namespace
}  // namespace fullbore::loader::testing
