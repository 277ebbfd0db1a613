#include "base/small_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

TEST(SmallFileTest, AFileIsReadWholeUpToTheMostThatIsAllowed) {
  const ScratchDirectory directory;
  std::ofstream(directory / "x") << std::string(10, 'a');
  EXPECT_EQ(ReadSmallFile(directory / "x", 10).value(), "aaaaaaaaaa");
  const auto longer = ReadSmallFile(directory / "x", 9);
  ASSERT_FALSE(longer.ok());
  EXPECT_THAT(longer.error().text, HasSubstr("longer than 9 B"));
}

TEST(SmallFileTest, AHugeFileIsNotTakenIntoMemory) {
  const ScratchDirectory directory;
  std::ofstream(directory / "x") << "a";
  std::filesystem::resize_file(directory / "x", uint64_t{1} << 40);
  EXPECT_FALSE(ReadSmallFile(directory / "x").ok());
}

TEST(SmallFileTest, WhatIsNoRegularFileIsNamedAndNeverWaitedFor) {
  const ScratchDirectory directory;
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  for (const auto& [path, kind] : {std::pair<std::string, const char*>{"/dev/zero", "it is a device"},
                                   {directory / "fifo", "it is a FIFO"},
                                   {directory.path(), "it is a directory"}}) {
    const auto text = ReadSmallFile(path);
    ASSERT_FALSE(text.ok()) << path;
    EXPECT_THAT(text.error().text, HasSubstr(kind));
  }
}

}  // namespace
}  // namespace fullbore
