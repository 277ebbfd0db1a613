#include "base/file_head.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>

#include "base/fd.h"
#include "base/testing/scratch_directory.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

TEST(FileHeadTest, ALongerFileIsCutAndAShorterOneIsWhole) {
  const ScratchDirectory directory;
  std::ofstream(directory / "x") << "abcdef";
  EXPECT_EQ(ReadHead(directory / "x", 4).value(), "abcd");
  EXPECT_EQ(ReadHead(directory / "x", 6).value(), "abcdef");
  EXPECT_EQ(ReadHead(directory / "x", 100).value(), "abcdef");
}

TEST(FileHeadTest, AFileWithoutAnEndEndsAtTheLimit) {
  EXPECT_EQ(ReadHead("/dev/zero", 3).value(), std::string(3, '\0'));
}

TEST(FileHeadTest, TextOfProcIsReadThoughItsSizeIsGivenAsZero) {
  EXPECT_EQ(ReadHead("/proc/self/comm", 9).value(), "base_test");
}

TEST(FileHeadTest, WhatComesInPiecesIsReadToTheLimit) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  ASSERT_EQ(write(to.get(), "ab", 2), 2);
  ASSERT_EQ(write(to.get(), "cd", 2), 2);
  to.reset();
  EXPECT_EQ(ReadHead(from.get(), "a pipe", 3).value(), "abc");
  EXPECT_EQ(ReadHead(from.get(), "a pipe", 3).value(), "d");
}

TEST(FileHeadTest, AnErrorNamesThePath) {
  const ScratchDirectory directory;
  EXPECT_THAT(ReadHead(directory / "none", 9).error().text,
              HasSubstr("cannot open '" + (directory / "none")));
  EXPECT_THAT(ReadHead(directory.path(), 9).error().text, HasSubstr("cannot read '" + directory.path()));
}

}  // namespace
}  // namespace fullbore
