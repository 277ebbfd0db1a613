#include "explain/ingest/tar_reader.h"

#include <gmock/gmock.h>

#include "explain/ingest/testing/trace_builder.h"

namespace fullbore::ingest {
namespace {

using ::testing::HasSubstr;
using testing::TarMember;

std::string ReadAll(ByteSource& source) {
  std::string text(1000, '\0'), all;
  for (;;) {
    const auto got = source.Read(text.data(), text.size());
    if (!got) return "error: " + got.error().text;
    if (*got == 0) return all;
    all.append(text, 0, *got);
  }
}

// "name=contents;" of every file, and the error that ends it.
std::string Listing(const std::string& tar) {
  TarReader reader(BytesInMemory(tar));
  std::string all;
  for (;;) {
    const auto next = reader.Next();
    if (!next) return all + "error: " + next.error().text;
    if (!*next) return all;
    all += reader.name() + "=" + ReadAll(*reader.Contents()) + ";";
  }
}

const std::string kEnd(1024, '\0');

std::string PaxRecord(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  size_t size = rest.size() + 1;
  while (std::to_string(size).size() + rest.size() != size) ++size;
  return std::to_string(size) + rest;
}

TEST(TarReaderTest, GivesRegularFilesAndNothingElse) {
  const std::string tar = TarMember("dir/", "", '5') + TarMember("a", "one") + TarMember("link", "", '2') +
                          TarMember("hard", "", '1') + TarMember("b", std::string(3000, 'x')) + kEnd;
  EXPECT_EQ(Listing(tar), "a=one;b=" + std::string(3000, 'x') + ";");
}

TEST(TarReaderTest, WhatWasNotReadOfAFileIsSkipped) {
  const std::string tar = TarMember("a", std::string(200'000, 'x')) + TarMember("b", "two") + kEnd;
  TarReader reader(BytesInMemory(tar));
  ASSERT_TRUE(*reader.Next());
  char some[10];
  ASSERT_EQ(*reader.Contents()->Read(some, sizeof some), sizeof some);
  ASSERT_TRUE(*reader.Next());
  EXPECT_EQ(ReadAll(*reader.Contents()), "two");
  EXPECT_FALSE(*reader.Next());
}

TEST(TarReaderTest, NamesComeAsTheyStandWhateverTheyHold) {
  const std::string unicode = "größe/训练.json";
  EXPECT_EQ(Listing(TarMember("x", PaxRecord("path", unicode), 'x') + TarMember("a", "1") + kEnd),
            unicode + "=1;");
  EXPECT_EQ(Listing(TarMember(unicode, "1") + kEnd), unicode + "=1;");
  for (const char* name : {"../../etc/passwd", "/etc/passwd", "x\x1b]0;owned\x07", "\xff\x9b", "a\nb"}) {
    EXPECT_EQ(Listing(TarMember(name, "1") + kEnd), std::string(name) + "=1;");
  }
}

TEST(TarReaderTest, ANameLongerThanAHeaderIsReadWhole) {
  const std::string name(5000, 'n');
  EXPECT_EQ(Listing(TarMember("././@LongLink", name + '\0', 'L') + TarMember("n", "1") + kEnd), name + "=1;");
}

TEST(TarReaderTest, ANameOfGigabytesIsRefused) {
  EXPECT_THAT(Listing(testing::TarHeader("././@LongLink", int64_t{8} << 30, 'L') + std::string(1 << 20, 'n')),
              HasSubstr("error: the tar file is damaged"));
}

// A few hundred bytes that claim an exabyte of zeros.
TEST(TarReaderTest, HolesAreRefusedRatherThanFilled) {
  const std::string exabyte = "1152921504606846976";
  const std::string about = PaxRecord("GNU.sparse.major", "0") + PaxRecord("GNU.sparse.minor", "1") +
                            PaxRecord("GNU.sparse.name", "holes") + PaxRecord("GNU.sparse.size", exabyte) +
                            PaxRecord("GNU.sparse.numblocks", "1") +
                            PaxRecord("GNU.sparse.map", "1152921504606846970,6");
  EXPECT_EQ(Listing(TarMember("x", about, 'x') + TarMember("a", "123456") + TarMember("b", "2") + kEnd),
            "holes=error: 'holes' has holes in the tar file;b=2;");
}

TEST(TarReaderTest, AnArchiveThatIsCutOffAnywhereEndsInAnError) {
  const std::string tar = TarMember("a", std::string(700, 'x')) + TarMember("b", "two") + kEnd;
  const std::string whole = "a=" + std::string(700, 'x') + ";b=two;";
  for (size_t bytes = 1; bytes < tar.size() - kEnd.size(); ++bytes) {
    const std::string got = Listing(tar.substr(0, bytes));
    EXPECT_TRUE(whole.starts_with(got.substr(0, got.find("error")))) << bytes << ": " << got;
  }
  EXPECT_EQ(Listing(tar), whole);
}

TEST(TarReaderTest, DamageInAHeaderIsNamed) {
  std::string tar = TarMember("a", "one") + TarMember("b", "two") + kEnd;
  tar[1024] = 'X';
  EXPECT_THAT(Listing(tar), HasSubstr("a=one;error: the tar file is damaged at or after 'a'"));
}

TEST(TarReaderTest, AnErrorOfTheStreamBelowIsKept) {
  std::string packed = testing::Gzip(TarMember("a", std::string(500'000, 'x')) + kEnd);
  packed.resize(packed.size() / 2);
  EXPECT_THAT(Listing(packed), HasSubstr("the gzip stream ends too early"));
}

}  // namespace
}  // namespace fullbore::ingest
