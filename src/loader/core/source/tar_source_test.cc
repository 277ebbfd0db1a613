#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "base/testing/scratch_directory.h"
#include "loader/core/source/container.h"
#include "loader/core/source/tar_format.h"
#include "loader/core/source/tar_index.h"
#include "loader/core/source/tar_writer.h"
#include "loader/core/source/testing/memory_store.h"
#include "loader/core/source/testing/read_all.h"

namespace fullbore::loader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MemoryStore;
using testing::ReadAll;
using ::testing::StartsWith;

std::string HeaderText(std::string_view name, uint64_t bytes) {
  const auto header = MakeTarHeader(name, bytes);
  return {header.begin(), header.end()};
}

std::string Padded(std::string data) {
  data.resize(TarPadded(data.size()), '\0');
  return data;
}

// An archive by hand.
class Archive {
 public:
  Archive& Add(std::string_view name, const std::string& data) {
    bytes += HeaderText(name, data.size()) + Padded(data);
    return *this;
  }
  // A header of another type or with another size field, its checksum put right.
  Archive& Header(std::string_view name, uint64_t size, char type, std::string_view size_field = {}) {
    std::string block = HeaderText(name, size);
    block[156] = type;
    if (!size_field.empty()) block.replace(124, 12, size_field);
    block.replace(148, 8, "        ");
    unsigned sum = 0;
    for (const char c : block) sum += static_cast<unsigned char>(c);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    block.replace(148, 8, std::string(digits, 6) + std::string("\0 ", 2));
    bytes += block;
    return *this;
  }
  Archive& Raw(const std::string& data) {
    bytes += Padded(data);
    return *this;
  }
  Archive& End() {
    bytes.append(2 * kTarBlock, '\0');
    return *this;
  }
  std::string bytes;
};

Result<std::unique_ptr<Source>> OpenBytes(const std::string& bytes, std::vector<std::string> fields = {}) {
  auto store = std::make_shared<MemoryStore>();
  store->files["a.tar"] = bytes;
  SourceOptions options;
  options.fields = std::move(fields);
  return OpenTar({options, {"a.tar"}, store});
}

std::string SmallArchive() {
  return Archive()
      .Add("0.jpg", "image zero")
      .Add("0.cls", "5")
      .Add("1.jpg", std::string(700, 'i'))
      .Add("1.cls", "17\n")
      .Add("2.jpg", "")
      .Add("2.cls", "-3")
      .End()
      .bytes;
}

TEST(TarSourceTest, GroupsMembersIntoSamples) {
  auto source = OpenBytes(Archive()
                              .Header("d/", 0, '5')
                              .Add("./d/a.b/0.JPG", "zero")
                              .Add("./d/a.b/0.cls", "1")
                              .Add("./d/a.b/0.seg.png", "mask")
                              .Add("README", "no sample")
                              .Add("d/.hidden", "nor this")
                              .Add("d/1.jpg", "one")
                              .Add("d/1.cls", "2")
                              .Add("d/1.seg.png", "cover")
                              .End()
                              .bytes);
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  ASSERT_EQ((*source)->fields().size(), 3u);
  EXPECT_EQ((*source)->fields()[0].name, "jpg");
  EXPECT_EQ((*source)->fields()[1].kind, SourceFieldKind::kInteger);
  EXPECT_EQ((*source)->fields()[2].kind, SourceFieldKind::kImage);
  EXPECT_THAT(ReadAll(**source), ElementsAre("zero|1|mask", "one|2|cover"));
  EXPECT_EQ((*source)->NameOf(1), "a.tar at 6,144: d/1");
}

TEST(TarSourceTest, TellsKindsByExtensions) {
  auto source = OpenBytes(Archive()
                              .Add("0.npy", "n")
                              .Add("0.json", "{}")
                              .Add("0.txt", "t")
                              .Add("0.id", "9")
                              .Add("0.bin", "\xff")
                              .bytes);
  ASSERT_TRUE(source.ok());
  std::vector<SourceFieldKind> kinds;
  for (const SourceField& field : (*source)->fields()) kinds.push_back(field.kind);
  EXPECT_THAT(kinds, ElementsAre(SourceFieldKind::kNpy, SourceFieldKind::kText, SourceFieldKind::kText,
                                 SourceFieldKind::kInteger, SourceFieldKind::kBytes));
}

TEST(TarSourceTest, TakesTheFirstAlternativeThatASampleHas) {
  const std::string bytes =
      Archive().Add("0.jpg", "j").Add("0.cls", "0").Add("1.PNG", "p").Add("1.cls", "1").End().bytes;
  for (const auto& fields : {std::vector<std::string>{}, {"jpg;png", "cls"}}) {
    auto source = OpenBytes(bytes, fields);
    ASSERT_TRUE(source.ok());
    EXPECT_THAT(ReadAll(**source), ElementsAre("j|0", "p|1"));
    EXPECT_EQ((*source)->fields()[0].name, "jpg");
  }
}

TEST(TarSourceTest, ASampleThatLacksAFieldIsABadSample) {
  auto source = OpenBytes(Archive()
                              .Add("0.jpg", "j")
                              .Add("0.cls", "0")
                              .Add("1.jpg", "k")
                              .Add("2.cls", "2")
                              .Add("3.jpg", "l")
                              .Add("3.cls", "x")
                              .End()
                              .bytes);
  ASSERT_TRUE(source.ok());
  EXPECT_THAT(ReadAll(**source), ElementsAre("j|0", "bad: a.tar at 2,560: 1 has no 'cls'",
                                             StartsWith("bad: a.tar: 2 has no 'jpg' or 'jpeg'"),
                                             "bad: a.tar at 4,608: 3: 'cls' is not an integer: 'x'"));
}

TEST(TarSourceTest, ReadsLongNamesPaxAndBase256) {
  const std::string path = std::string(120, 'd') + "/0";
  const std::string pax = "19 path=d/\xc3\xa4\xc3\xb6.jpg\n";
  const std::string size_record = "9 size=3\n";
  auto source = OpenBytes(Archive()
                              .Header("././@LongLink", path.size() + 5, 'L')
                              .Raw(path + ".jpg" + std::string(1, '\0'))
                              .Header("cut off", 1, '0')
                              .Raw("A")
                              .Header("PaxHeader", pax.size(), 'x')
                              .Raw(pax)
                              .Header("ascii", 1, '0')
                              .Raw("B")
                              .Header("PaxHeader", size_record.size(), 'x')
                              .Raw(size_record)
                              .Header("2.jpg", 0, '0')
                              .Raw("CCC")
                              .Header("3.jpg", 0, '0', std::string("\x80\0\0\0\0\0\0\0\0\0\0\2", 12))
                              .Raw("DD")
                              .End()
                              .bytes);
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  EXPECT_THAT(ReadAll(**source), ElementsAre("A", "B", "CCC", "DD"));
  EXPECT_THAT((*source)->NameOf(0), HasSubstr(path));
  EXPECT_THAT((*source)->NameOf(1), HasSubstr("d/\xc3\xa4\xc3\xb6"));
  EXPECT_THAT((*source)->TakeMessages(), IsEmpty());
}

TEST(TarSourceTest, RefusesSparseMembers) {
  EXPECT_EQ(OpenBytes(Archive().Header("0.jpg", 0, 'S').End().bytes).error().code, ErrorCode::kUnsupported);
  const std::string pax = "22 GNU.sparse.major=1\n";
  EXPECT_EQ(OpenBytes(Archive().Header("x", pax.size(), 'x').Raw(pax).bytes).error().code,
            ErrorCode::kUnsupported);
}

TEST(TarSourceTest, ReadsWhatTarWrites) {
  for (const char* format : {"v7", "ustar", "gnu", "pax"}) {
    ScratchDirectory root;
    root.Write("in/0.jpg", "zero");
    root.Write("in/0.cls", "7");
    const std::string command =
        "cd '" + root.path() + "' && tar --format=" + format + " -cf out.tar in/0.jpg in/0.cls 2>/dev/null";
    if (std::system(command.c_str()) != 0) GTEST_SKIP() << "no tar that knows " << format;
    SourceOptions options;
    options.paths = {root / "*.tar"};
    auto source = OpenSource(options);
    ASSERT_TRUE(source.ok()) << format;
    EXPECT_THAT(ReadAll(**source), ElementsAre("zero|7")) << format;
  }
}

// --- Damage

TEST(TarSourceTest, EveryTruncationGivesOnlyTheSamplesBeforeTheCut) {
  const std::string whole = SmallArchive();
  const std::vector<std::string> expected = ReadAll(**OpenBytes(whole));
  ASSERT_EQ(expected.size(), 3u);
  for (size_t length = 0; length < whole.size(); ++length) {
    auto source = OpenBytes(whole.substr(0, length), {"jpg", "cls"});
    if (!source.ok()) {
      EXPECT_LT(length, 2 * kTarBlock + 1) << length;
      continue;
    }
    const std::vector<std::string> texts = ReadAll(**source);
    ASSERT_LE(texts.size(), 3u);
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_TRUE(texts[i].starts_with("bad: ") || texts[i] == expected[i]) << length << ": " << texts[i];
    }
    // Silent only once a block of the mark at the end is there.
    const bool complete = length >= whole.size() - kTarBlock;
    EXPECT_EQ((*source)->TakeMessages().empty(), complete) << length;
  }
}

TEST(TarSourceTest, NamesTheCut) {
  auto source = OpenBytes(SmallArchive().substr(0, 3000));
  ASSERT_TRUE(source.ok());
  const auto messages = (*source)->TakeMessages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_THAT(messages[0].text,
              HasSubstr("'a.tar' is truncated at byte 3000, within '1.jpg', which begins at byte 2048"));
}

TEST(TarSourceTest, NoFlippedBitOfAHeaderGivesAWrongSample) {
  const std::string whole = SmallArchive();
  const std::vector<std::string> expected = ReadAll(**OpenBytes(whole));
  for (size_t bit = 0; bit < 8 * kTarBlock; ++bit) {
    std::string damaged = whole;
    damaged[2 * kTarBlock + bit / 8] = static_cast<char>(damaged[2 * kTarBlock + bit / 8] ^ 1 << bit % 8);
    auto source = OpenBytes(damaged, {"jpg", "cls"});
    if (!source.ok()) continue;
    for (const std::string& text : ReadAll(**source)) {
      const bool known = std::find(expected.begin(), expected.end(), text) != expected.end();
      EXPECT_TRUE(text.starts_with("bad: ") || known) << bit << ": " << text;
    }
  }
}

TEST(TarSourceTest, AShardRewrittenUnderUsGivesBadSamples) {
  ScratchDirectory root;
  SourceOptions options;
  options.paths = {root.Write("a.tar", SmallArchive())};
  auto source = OpenSource(options);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(ReadAll(**source)[0], "image zero|5");
  root.Write("a.tar", Archive().Add("0.jpg", "other").Add("0.cls", "6").End().bytes);
  EXPECT_THAT(ReadAll(**source)[0], HasSubstr("has changed since it was indexed"));
}

TEST(TarSourceTest, StorageFailureIsNotABadSample) {
  auto store = std::make_shared<MemoryStore>();
  store->files["a.tar"] = SmallArchive();
  auto source = OpenTar({{}, {"a.tar"}, store});
  ASSERT_TRUE(source.ok());
  store->failure = Error{ErrorCode::kUnavailable, "down", ""};
  RawSample sample;
  EXPECT_EQ((*source)->Read(0, sample).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(OpenTar({{}, {"a.tar"}, store}).error().code, ErrorCode::kUnavailable);
}

// --- Index files

class TarIndexFileTest : public ::testing::Test {
 protected:
  TarIndexFileTest() {
    auto writer = TarWriter::Create(root_ / "a.tar");
    for (int i = 0; i < 20; ++i) {
      const std::string image = "image " + std::to_string(i), label = std::to_string(i % 3);
      const TarWriter::Member members[] = {{"jpg", Bytes(image)}, {"cls", Bytes(label)}};
      EXPECT_TRUE(writer->Add(std::to_string(100 + i), members).ok());
      expected_.push_back(image + "|" + label);
    }
    EXPECT_TRUE(writer->Finish().ok());
    store_->files["a.tar"] = *ReadFile(root_ / "a.tar");
    store_->files["a.tar.idx"] = *ReadFile(root_ / "a.tar.idx");
  }

  static std::span<const uint8_t> Bytes(const std::string& text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  }
  std::unique_ptr<Source> Open() {
    auto source = OpenTar({{}, {"a.tar"}, store_});
    return source.ok() ? std::move(*source) : nullptr;
  }

  ScratchDirectory root_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  std::vector<std::string> expected_;
};

TEST_F(TarIndexFileTest, SparesReadingTheShard) {
  auto source = Open();
  EXPECT_LE(store_->reads, 6u);
  EXPECT_THAT(source->TakeMessages(), IsEmpty());
  EXPECT_EQ(ReadAll(*source), expected_);
}

TEST_F(TarIndexFileTest, NoDamageOfItIsEverBelieved) {
  const std::string whole = store_->files["a.tar.idx"];
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const bool cut : {true, false}) {
      std::string& index = store_->files["a.tar.idx"];
      index = cut ? whole.substr(0, at) : whole;
      if (!cut) index[at] ^= 0x10;
      auto source = Open();
      ASSERT_TRUE(source);
      EXPECT_EQ(ReadAll(*source), expected_) << at;
      EXPECT_EQ(source->TakeMessages().size(), 1u) << at;
    }
  }
}

TEST_F(TarIndexFileTest, AnIndexOfAnotherShardOfTheSameSizeIsNotBelieved) {
  std::string& shard = store_->files["a.tar"];
  shard = Archive().Add("x.jpg", std::string(39 * 1024 - 512, 'x')).Add("x.cls", "1").End().bytes;
  ASSERT_EQ(shard.size(), (*ReadFile(root_ / "a.tar")).size());
  auto source = Open();
  ASSERT_TRUE(source);
  EXPECT_EQ(source->size(), 1u);
  const auto messages = source->TakeMessages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_THAT(messages[0].text, HasSubstr("the shard has changed since it was written"));
}

TEST_F(TarIndexFileTest, AMemberThatMovedIsNeverGivenAsAnother) {
  std::string& shard = store_->files["a.tar"];
  // The first two samples change places; the last stays, so that the index looks right.
  const std::string first = shard.substr(0, 4 * kTarBlock),
                    second = shard.substr(4 * kTarBlock, 4 * kTarBlock);
  shard.replace(0, 8 * kTarBlock, second + first);
  auto source = Open();
  const auto texts = ReadAll(*source);
  EXPECT_THAT(texts[0], HasSubstr("the member there is not the one that was indexed"));
  EXPECT_THAT(texts[1], HasSubstr("the member there is not the one that was indexed"));
  EXPECT_EQ(texts[2], expected_[2]);
}

TEST(TarIndexTest, ComesBackAsItWasWritten) {
  std::mt19937 random(3);
  TarIndexBuilder builder;
  std::vector<std::string> written, read;
  uint64_t at = 0;
  const auto describe = [](const TarSample& sample) {
    std::string text(sample.key);
    for (const TarPart& part : sample.parts)
      text += " " + std::string(part.extension) + std::to_string(part.header) + "," +
              std::to_string(part.bytes) + "," + std::to_string(part.header_crc);
    return text;
  };
  for (int i = 0; i < 200; ++i) {
    std::vector<TarPart> parts;
    for (size_t k = random() % 4; k > 0; --k) {
      at += random() % 3 * kTarBlock;
      parts.push_back({k % 2 ? "jpg" : "cls", at, random() % 100'000, static_cast<uint32_t>(random())});
      at += kTarBlock + parts.back().bytes;
    }
    const std::string key(random() % 300, 'k');
    builder.Add({key, parts});
    written.push_back(describe({key, parts}));
  }
  const std::string index = builder.Finish(at);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(index.data()), index.size());
  ASSERT_TRUE(
      ReadTarIndex(bytes, at, [&](const TarSample& sample) { read.push_back(describe(sample)); }).ok());
  EXPECT_EQ(read, written);
}

}  // namespace
}  // namespace fullbore::loader
