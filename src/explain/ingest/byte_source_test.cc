#include "explain/ingest/byte_source.h"

#include <gmock/gmock.h>

#include <vector>

#include "explain/ingest/testing/trace_builder.h"

namespace fullbore::ingest {
namespace {

// How many bytes could be read, and the error that ended it, if any.
std::pair<size_t, std::string> Drain(const std::string& packed) {
  const auto source = BytesInMemory(packed);
  std::vector<char> buffer(1 << 20);
  size_t total = 0;
  for (;;) {
    const auto got = source->Read(buffer.data(), buffer.size());
    if (!got) return {total, got.error().text};
    if (*got == 0) return {total, ""};
    total += *got;
  }
}

std::string TextOf(const std::string& packed) {
  const auto source = BytesInMemory(packed);
  std::string text(1000, '\0'), all;
  for (;;) {
    const auto got = source->Read(text.data(), text.size());
    if (!got) return "error: " + got.error().text;
    if (*got == 0) return all;
    all.append(text, 0, *got);
  }
}

TEST(ByteSourceTest, AFileThatUnpacksToManyTimesItsSizeIsGivenUp) {
  const std::string bomb(80 << 20, ' ');
  for (const std::string& packed :
       {testing::Zstd(bomb), testing::Gzip(bomb), testing::Xz(bomb), testing::Bzip2(bomb)}) {
    const auto [bytes, error] = Drain(packed);
    EXPECT_LT(bytes, bomb.size());
    EXPECT_THAT(error, ::testing::HasSubstr("unpacks to more than 500 times its size"));
  }
}

TEST(ByteSourceTest, ASmallFileMayUnpackToWhatItLikes) {
  const std::string text(32 << 20, ' ');
  EXPECT_EQ(Drain(testing::Zstd(text)), std::make_pair(text.size(), std::string()));
  EXPECT_EQ(Drain(testing::Gzip(text)), std::make_pair(text.size(), std::string()));
  EXPECT_EQ(Drain(testing::Xz(text)), std::make_pair(text.size(), std::string()));
  EXPECT_EQ(Drain(testing::Bzip2(text)), std::make_pair(text.size(), std::string()));
}

TEST(ByteSourceTest, WhatIsPackedWithXzOrBzip2IsReadAsItWas) {
  const std::string text = testing::SmallTrainingTrace();
  EXPECT_EQ(TextOf(testing::Xz(text)), text);
  EXPECT_EQ(TextOf(testing::Bzip2(text)), text);
  EXPECT_EQ(TextOf(testing::Xz(text) + testing::Xz(text)), text + text) << "as cat makes it of two files";
}

TEST(ByteSourceTest, WhatOnlyBeginsLikeAPackedFileIsReadAsItIs) {
  for (const std::string text : {"BZh is not enough",
                                 "\xfd"
                                 "7zXY",
                                 "BZh9", "\x1f", ""})
    EXPECT_EQ(TextOf(text), text);
}

TEST(ByteSourceTest, OfACutOffFileAllIsReadThatCanBe) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i * 7919) + ",";
  for (std::string packed : {testing::Xz(text), testing::Bzip2(text)}) {
    packed.resize(packed.size() / 2);
    const auto [bytes, error] = Drain(packed);
    EXPECT_GT(bytes, text.size() / 8);
    EXPECT_LT(bytes, text.size());
    EXPECT_THAT(error,
                ::testing::HasSubstr("stream ends too early at byte " + std::to_string(packed.size())));
  }
}

TEST(ByteSourceTest, DamageInAPackedFileIsAnError) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i * 7919) + ",";
  for (std::string packed : {testing::Xz(text), testing::Bzip2(text)}) {
    packed[packed.size() / 2] ^= 0x55;
    EXPECT_THAT(Drain(packed).second, ::testing::HasSubstr("stream is damaged"));
  }
}

// Byte 16 of this small file is the size of the dictionary, 40 stands for 4 GiB; its header's checksum does not matter
// then.
TEST(ByteSourceTest, AnXzFileThatAsksForGigabytesOfMemoryIsRefused) {
  std::string packed = testing::Xz("{}");
  ASSERT_EQ(packed[14], 0x21) << "LZMA2";
  packed[16] = 40;
  EXPECT_THAT(Drain(packed).second, ::testing::HasSubstr("more than 256 MB of memory"));
  packed[16] = 28;
  EXPECT_THAT(Drain(packed).second, ::testing::Not(::testing::HasSubstr("memory")));
}

}  // namespace
}  // namespace fullbore::ingest
