#include "explain/ingest/archive_reader.h"

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
  ArchiveReader reader(BytesInMemory(tar));
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

TEST(ArchiveReaderTest, GivesRegularFilesAndNothingElse) {
  const std::string tar = TarMember("dir/", "", '5') + TarMember("a", "one") + TarMember("link", "", '2') +
                          TarMember("hard", "", '1') + TarMember("b", std::string(3000, 'x')) + kEnd;
  EXPECT_EQ(Listing(tar), "a=one;b=" + std::string(3000, 'x') + ";");
}

TEST(ArchiveReaderTest, ReadsZipFiles) {
  const std::string text = testing::SmallTrainingTrace();
  EXPECT_EQ(Listing(testing::Zip({{"a", "one"}, {"dir/b", text}})), "a=one;dir/b=" + text + ";");
}

TEST(ArchiveReaderTest, AZipFileThatUnpacksToManyTimesItsSizeIsGivenUp) {
  const std::string listing = Listing(testing::Zip({{"bomb", std::string(80 << 20, ' ')}}));
  EXPECT_LT(listing.size(), size_t{70} << 20);
  EXPECT_THAT(listing.substr(0, 200), HasSubstr("unpacks to more than 500 times its size"));
}

// LZMA and PPMd, which ask for as much memory as they like.
TEST(ArchiveReaderTest, OtherWaysOfPackingThanDeflateAreRefused) {
  for (const char method : {14, 98}) {
    std::string zip = testing::Zip({{"a", "one"}, {"b", "two"}});
    zip[8] = method;
    EXPECT_THAT(Listing(zip), HasSubstr("error: 'a' is packed in a way that is not read"));
  }
}

TEST(ArchiveReaderTest, AZipFileThatIsCutOffAnywhereEndsInAnError) {
  const std::string zip = testing::Zip({{"a", std::string(700, 'x')}, {"b", "two"}});
  const std::string whole = Listing(zip);
  for (size_t bytes = 1; bytes < zip.size() / 2; ++bytes) {
    const std::string got = Listing(zip.substr(0, bytes));
    EXPECT_TRUE(whole.starts_with(got.substr(0, got.find("error")))) << bytes << ": " << got;
  }
}

TEST(ArchiveReaderTest, WhatWasNotReadOfAFileIsSkipped) {
  const std::string tar = TarMember("a", std::string(200'000, 'x')) + TarMember("b", "two") + kEnd;
  ArchiveReader reader(BytesInMemory(tar));
  ASSERT_TRUE(*reader.Next());
  char some[10];
  ASSERT_EQ(*reader.Contents()->Read(some, sizeof some), sizeof some);
  ASSERT_TRUE(*reader.Next());
  EXPECT_EQ(ReadAll(*reader.Contents()), "two");
  EXPECT_FALSE(*reader.Next());
}

TEST(ArchiveReaderTest, NamesComeAsTheyStandWhateverTheyHold) {
  const std::string unicode = "größe/训练.json";
  EXPECT_EQ(Listing(TarMember("x", PaxRecord("path", unicode), 'x') + TarMember("a", "1") + kEnd),
            unicode + "=1;");
  EXPECT_EQ(Listing(TarMember(unicode, "1") + kEnd), unicode + "=1;");
  for (const char* name : {"../../etc/passwd", "/etc/passwd", "x\x1b]0;owned\x07", "\xff\x9b", "a\nb"}) {
    EXPECT_EQ(Listing(TarMember(name, "1") + kEnd), std::string(name) + "=1;");
  }
}

TEST(ArchiveReaderTest, ANameLongerThanAHeaderIsReadWhole) {
  const std::string name(5000, 'n');
  EXPECT_EQ(Listing(TarMember("././@LongLink", name + '\0', 'L') + TarMember("n", "1") + kEnd), name + "=1;");
}

TEST(ArchiveReaderTest, ANameOfGigabytesIsRefused) {
  EXPECT_THAT(Listing(testing::TarHeader("././@LongLink", int64_t{8} << 30, 'L') + std::string(1 << 20, 'n')),
              HasSubstr("error: the archive is damaged"));
}

// A few hundred bytes that claim an exabyte of zeros.
TEST(ArchiveReaderTest, HolesAreRefusedRatherThanFilled) {
  const std::string exabyte = "1152921504606846976";
  const std::string about = PaxRecord("GNU.sparse.major", "0") + PaxRecord("GNU.sparse.minor", "1") +
                            PaxRecord("GNU.sparse.name", "holes") + PaxRecord("GNU.sparse.size", exabyte) +
                            PaxRecord("GNU.sparse.numblocks", "1") +
                            PaxRecord("GNU.sparse.map", "1152921504606846970,6");
  EXPECT_EQ(Listing(TarMember("x", about, 'x') + TarMember("a", "123456") + TarMember("b", "2") + kEnd),
            "holes=error: 'holes' has holes in the archive;b=2;");
}

TEST(ArchiveReaderTest, AnArchiveThatIsCutOffAnywhereEndsInAnError) {
  const std::string tar = TarMember("a", std::string(700, 'x')) + TarMember("b", "two") + kEnd;
  const std::string whole = "a=" + std::string(700, 'x') + ";b=two;";
  for (size_t bytes = 1; bytes < tar.size() - kEnd.size(); ++bytes) {
    const std::string got = Listing(tar.substr(0, bytes));
    EXPECT_TRUE(whole.starts_with(got.substr(0, got.find("error")))) << bytes << ": " << got;
  }
  EXPECT_EQ(Listing(tar), whole);
}

TEST(ArchiveReaderTest, DamageInAHeaderIsNamed) {
  std::string tar = TarMember("a", "one") + TarMember("b", "two") + kEnd;
  tar[1024] = 'X';
  EXPECT_THAT(Listing(tar), HasSubstr("a=one;error: the archive is damaged at or after 'a'"));
}

TEST(ArchiveReaderTest, AnErrorOfTheStreamBelowIsKept) {
  std::string packed = testing::Gzip(TarMember("a", std::string(500'000, 'x')) + kEnd);
  packed.resize(packed.size() / 2);
  EXPECT_THAT(Listing(packed), HasSubstr("the gzip stream ends too early"));
}

}  // namespace
}  // namespace fullbore::ingest
