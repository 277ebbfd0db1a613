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

TEST(ByteSourceTest, AFileThatUnpacksToManyTimesItsSizeIsGivenUp) {
  constexpr size_t kGiB = 1 << 30;
  const std::string bomb(kGiB / 4, ' ');
  for (const std::string& packed : {testing::Zstd(bomb), testing::Gzip(bomb)}) {
    const auto [bytes, error] = Drain(packed);
    EXPECT_LT(bytes, size_t{200} << 20);
    EXPECT_THAT(error, ::testing::HasSubstr("unpacks to more than 500 times its size"));
  }
}

TEST(ByteSourceTest, ASmallFileMayUnpackToWhatItLikes) {
  const std::string text(32 << 20, ' ');
  EXPECT_EQ(Drain(testing::Zstd(text)), std::make_pair(text.size(), std::string()));
  EXPECT_EQ(Drain(testing::Gzip(text)), std::make_pair(text.size(), std::string()));
}

}  // namespace
}  // namespace fullbore::ingest
