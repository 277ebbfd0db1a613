#include "loader/core/image/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fullbore::loader {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

Result<ImageFormat> Recognise(const std::string& bytes) {
  return RecogniseFormat({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

TEST(FormatTest, TheBytesDecide) {
  EXPECT_EQ(*Recognise("\xFF\xD8\xFF\xE0"s), ImageFormat::kJpeg);
  EXPECT_EQ(*Recognise("\x89PNG\r\n\x1a\n"s), ImageFormat::kPng);
  EXPECT_EQ(*Recognise("RIFF\x10\0\0\0WEBPVP8 "s), ImageFormat::kWebp);
}

TEST(FormatTest, AKnownFormatThatIsNotDecodedSaysWhatToDo) {
  const auto gif = Recognise("GIF89a\x01\0\x01\0\0\0"s);
  ASSERT_FALSE(gif.ok());
  EXPECT_EQ(gif.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(gif.error().text, HasSubstr("a GIF"));
  EXPECT_THAT(gif.error().hint, HasSubstr("mogrify"));
}

TEST(FormatTest, UnknownBytesAreShown) {
  const auto unknown = Recognise("hello, world");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(unknown.error().text, HasSubstr("68 65 6c 6c 6f 2c 20 77 ('hello, w')"));
}

TEST(FormatTest, AnyBeginningOfAMagicIsACutFile) {
  const std::string magics[] = {"\xFF\xD8\xFF"s, "\x89PNG\r\n\x1a\n"s, "RIFF\x10\0\0\0WEBP"s};
  for (const std::string& magic : magics) {
    for (size_t size = 1; size < magic.size(); ++size) {
      const auto cut = Recognise(magic.substr(0, size));
      ASSERT_FALSE(cut.ok());
      EXPECT_EQ(cut.error().code, ErrorCode::kCorrupt) << size;
      EXPECT_THAT(cut.error().text, HasSubstr(std::to_string(size))) << cut.error().text;
    }
  }
}

TEST(FormatTest, OnlyALongRunOfZerosAtTheEndWasNeverWritten) {
  const auto written = [](size_t zeros) {
    const std::string bytes = "a\0b"s + std::string(zeros, '\0');
    return WithoutUnwrittenTail({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).size();
  };
  EXPECT_EQ(written(0), 3U);
  EXPECT_EQ(written(511), 514U);
  EXPECT_EQ(written(512), 3U);
}

}  // namespace
}  // namespace fullbore::loader
