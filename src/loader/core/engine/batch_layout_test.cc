// Texts in batches: whether a sample's memory is taken
// for one or a part of it copied, each row keeps its own.
#include "loader/core/engine/batch_layout.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace fullbore::loader {
namespace {

class Texts : public Source {
 public:
  explicit Texts(size_t texts) {
    for (size_t i = 0; i < texts; ++i)
      fields_.push_back({fmt::format("text{}", i), SourceFieldKind::kText, {}, {}});
  }

  // Of lengths between nothing and some thousand letters,
  // so that memory that goes round must fit the next one.
  static std::string Of(uint64_t id, size_t field) {
    return std::string(id * 977 % 5000, static_cast<char>('a' + (id + field) % 26));
  }

  uint64_t size() const override { return 50; }
  const std::vector<SourceField>& fields() const override { return fields_; }
  const std::vector<std::string>& class_names() const override { return none_; }
  std::string NameOf(uint64_t id) const override { return fmt::format("text-{}", id); }

  Result<void> Read(uint64_t id, RawSample& out) const override {
    std::string all;
    for (size_t i = 0; i < fields_.size(); ++i) all += Of(id, i);
    if (out.storage.size() < all.size()) out.storage.resize(all.size());
    std::copy(all.begin(), all.end(), out.storage.begin());
    out.fields.clear();
    for (size_t i = 0, at = 0; i < fields_.size(); at += Of(id, i).size(), ++i) {
      out.fields.push_back({std::span<const uint8_t>(out.storage).subspan(at, Of(id, i).size()), 0});
    }
    return {};
  }

 private:
  std::vector<SourceField> fields_;
  const std::vector<std::string> none_;
};

class TextsInBatches : public testing::TestWithParam<size_t> {};

TEST_P(TextsInBatches, StayAsTheyWereWhileOthersAreRead) {
  const size_t texts = GetParam();
  auto loader =
      Loader::Over(std::make_unique<Texts>(texts), {.batch_size = 8, .pad_last = true, .threads = 2});
  ASSERT_TRUE(loader.ok()) << loader.error().text;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<Batch> kept;
    for (auto batch = loader->Next(); batch.ok() && *batch; batch = loader->Next()) kept.push_back(**batch);
    ASSERT_EQ(kept.size(), 7u);
    for (const Batch& batch : kept) {
      ASSERT_EQ(batch.rows, 8);
      for (size_t row = 0; row < 8; ++row) {
        for (size_t field = 0; field < texts; ++field) {
          EXPECT_EQ(batch.fields[field].items[row], Texts::Of(batch.sample_ids[row], field));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OneWhichFillsItsSampleOrTwoOfASize, TextsInBatches, testing::Values(1, 2));

// Text 0 is most of the sample: its memory goes to the row, and the next read gets the row's old memory.
TEST(WriteRow, TakesTheMemoryOfASampleThatIsMostlyOneText) {
  const Texts source(1);
  const auto plan = ImagePlan::Compile({}, {});
  ASSERT_TRUE(plan.ok());
  const auto layout = BatchLayout::Of(source, *plan, {}, 1);
  ASSERT_TRUE(layout.ok());
  Slot slot;
  slot.items = {{Item{}}};
  RawSample sample;
  ASSERT_TRUE(source.Read(1, sample).ok());
  const uint8_t* const read_to = sample.storage.data();
  WriteTimes times;
  ASSERT_TRUE(WriteRow(*layout, sample, {}, nullptr, slot, 0, times).ok());
  EXPECT_EQ(reinterpret_cast<const uint8_t*>(slot.items[0][0].view().data()), read_to);
  EXPECT_EQ(slot.items[0][0].view(), Texts::Of(1, 0));
}

}  // namespace
}  // namespace fullbore::loader
