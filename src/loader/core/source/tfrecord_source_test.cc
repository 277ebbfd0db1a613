#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loader/core/source/container.h"
#include "loader/core/source/example.h"
#include "loader/core/source/testing/example_builder.h"
#include "loader/core/source/testing/memory_store.h"
#include "loader/core/source/testing/read_all.h"

namespace fullbore::loader {
namespace {

using ::testing::ElementsAre;
using testing::ExampleBuilder;
using ::testing::HasSubstr;
using testing::MemoryStore;
using testing::ReadAll;

constexpr char kJpeg[] = "\xff\xd8\xff image";

Result<std::unique_ptr<Source>> OpenBytes(const std::string& bytes, std::vector<std::string> fields = {}) {
  auto store = std::make_shared<MemoryStore>();
  store->files["a.tfrecord"] = bytes;
  SourceOptions options;
  options.fields = std::move(fields);
  return OpenTfRecord({options, {"a.tfrecord"}, store});
}

std::string Small(int i) {
  return ExampleBuilder()
      .Bytes("image", kJpeg + std::to_string(i))
      .Integers("label", {i - 1}, i % 2 == 0)
      .Bytes("text",
             "gr\xc3\xbc\xc3\x9f"
             "e")
      .Record();
}

TEST(TfRecordSourceTest, TellsKindsByTheFirstRecord) {
  const std::string bytes = ExampleBuilder()
                                .Bytes("image/encoded", kJpeg)
                                .Bytes("caption", "a cat")
                                .Bytes("raw", std::string("\0\1", 2))
                                .Integers("label", {-7})
                                .Integers("box", {1, 2, 300}, false)
                                .Floats("point", {0.5f, 2.0f})
                                .Floats("weight", {1.5f}, false)
                                .Integers("nothing", {})
                                .Record();
  auto source = OpenBytes(bytes);
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  std::vector<std::string> fields;
  for (const SourceField& field : (*source)->fields())
    fields.push_back(field.name + " " + std::to_string(static_cast<int>(field.kind)) + " " +
                     NameOf(field.dtype) + " " + std::to_string(field.shape.empty() ? 0 : field.shape[0]));
  EXPECT_THAT(fields,
              ElementsAre("box 2 int64 3", "caption 4 uint8 0", "image/encoded 0 uint8 0", "label 3 uint8 0",
                          "point 2 float32 2", "raw 5 uint8 0", "weight 2 float32 0"));
  RawSample sample;
  ASSERT_TRUE((*source)->Read(0, sample).ok());
  int64_t box[3];
  ASSERT_EQ(sample.fields[0].bytes.size(), sizeof box);
  std::memcpy(box, sample.fields[0].bytes.data(), sizeof box);
  EXPECT_THAT(box, ElementsAre(1, 2, 300));
  float point[2];
  std::memcpy(point, sample.fields[4].bytes.data(), sizeof point);
  EXPECT_THAT(point, ElementsAre(0.5f, 2.0f));
  EXPECT_EQ(sample.fields[3].integer, -7);
  EXPECT_EQ(sample.fields[6].bytes.size(), sizeof(float));
  const auto messages = (*source)->TakeMessages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_THAT(messages[0].text, HasSubstr("'nothing' is left out"));
}

TEST(TfRecordSourceTest, ReadsTheFieldsThatAreAskedFor) {
  auto source = OpenBytes(Small(0) + Small(1) + Small(2), {"label", "image"});
  ASSERT_TRUE(source.ok());
  EXPECT_THAT(ReadAll(**source),
              ElementsAre("-1|\xff\xd8\xff image0", "0|\xff\xd8\xff image1", "1|\xff\xd8\xff image2"));
  EXPECT_THAT((*source)->NameOf(1), HasSubstr("a.tfrecord at "));
  const auto none = OpenBytes(Small(0), {"lable"});
  EXPECT_THAT(none.error().text, HasSubstr("no feature 'lable' (it has: image, label, text)"));
}

TEST(TfRecordSourceTest, ARecordThatDeviatesIsABadSample) {
  const std::string more = ExampleBuilder().Integers("label", {1, 2}).Record();
  const std::string other = ExampleBuilder().Floats("label", {1}).Record();
  const std::string lacking = ExampleBuilder().Integers("x", {1}).Record();
  const std::string no_example = ExampleBuilder::RecordOf("no example");
  auto source = OpenBytes(Small(4) + more + other + lacking + no_example + Small(5), {"label"});
  ASSERT_TRUE(source.ok());
  EXPECT_THAT(ReadAll(**source),
              ElementsAre("3", HasSubstr("bad: a.tfrecord at "), HasSubstr("'label' holds floats"),
                          HasSubstr("'label' holds nothing"), HasSubstr("is not a tf.train.Example"), "4"));
}

TEST(TfRecordSourceTest, EveryTruncationGivesOnlyTheRecordsBeforeTheCut) {
  const std::string whole = Small(0) + Small(1) + Small(2);
  const auto expected = ReadAll(**OpenBytes(whole));
  for (size_t length = 0; length < whole.size(); ++length) {
    auto source = OpenBytes(whole.substr(0, length));
    const size_t ends[] = {Small(0).size(), Small(0).size() + Small(1).size()};
    const uint64_t records = (length >= ends[0]) + (length >= ends[1]);
    const bool between = length == 0 || length == ends[0] || length == ends[1];
    ASSERT_EQ(source.ok(), records > 0) << length;
    if (!source.ok()) continue;
    EXPECT_EQ(ReadAll(**source),
              std::vector<std::string>(expected.begin(), expected.begin() + static_cast<int>(records)));
    EXPECT_EQ((*source)->TakeMessages().empty(), between) << length;
  }
}

TEST(TfRecordSourceTest, NoFlippedBitGivesAWrongSample) {
  const std::string whole = Small(0) + Small(1) + Small(2);
  const auto expected = ReadAll(**OpenBytes(whole));
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    auto source = OpenBytes(damaged);
    if (!source.ok()) continue;
    const auto texts = ReadAll(**source);
    for (size_t i = 0; i < texts.size(); ++i)
      EXPECT_TRUE(texts[i] == expected[i] || texts[i].starts_with("bad: ")) << bit;
  }
}

TEST(TfRecordSourceTest, RefusesCompressedFiles) {
  EXPECT_EQ(OpenBytes("\x1f\x8b" + Small(0)).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(OpenBytes("\x78\x9c" + Small(0)).error().code, ErrorCode::kUnsupported);
}

TEST(ExampleTest, EveryTruncationIsRefusedOrEndsBetweenTwoFeatures) {
  const std::string whole =
      ExampleBuilder().Bytes("a", "1").Floats("b", {1, 2}).Integers("c", {1, 500}).Example();
  const auto parse = [](std::string_view bytes) {
    return ParseExample({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                        [](auto, const auto&) {});
  };
  EXPECT_TRUE(parse(whole));
  for (size_t length = 1; length < whole.size(); ++length)
    EXPECT_FALSE(parse(whole.substr(0, length))) << length;
  EXPECT_TRUE(parse(""));
}

}  // namespace
}  // namespace fullbore::loader
