#include "loader/core/source/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/testing/scratch_directory.h"
#include "fullbore/loader/source.h"
#include "loader/core/source/tar_writer.h"
#include "loader/core/source/testing/read_all.h"

namespace fullbore::loader {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ReadAll;

class PackTest : public ::testing::Test {
 protected:
  PackTest() {
    for (int i = 0; i < 30; ++i) {
      const std::string name = std::to_string(i);
      root_.Write("in/" + std::string(i % 3 ? "cat/" : "dog/") + name + (i % 2 ? ".jpg" : ".PNG"),
                  std::string(static_cast<size_t>(i) * 100, 'x') + name);
    }
    options_.source.paths = {root_ / "in"};
    options_.output = root_ / "out";
    options_.shard_bytes = 12'000;
  }

  std::unique_ptr<Source> Open(const std::string& name) {
    SourceOptions options;
    options.paths = {root_ / name};
    auto source = OpenSource(options);
    EXPECT_TRUE(source.ok()) << ToString(source.error());
    return source.ok() ? std::move(*source) : nullptr;
  }
  std::vector<std::string> Files() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(options_.output))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  ScratchDirectory root_;
  PackOptions options_;
};

TEST_F(PackTest, ReadsBackAsItWas) {
  auto packed = Pack(options_, nullptr);
  ASSERT_TRUE(packed.ok()) << ToString(packed.error());
  EXPECT_EQ(packed->done.samples, 30u);
  EXPECT_GT(packed->done.shards, 2u);
  auto folder = Open("in"), shards = Open("out");
  EXPECT_EQ(ReadAll(*shards), ReadAll(*folder));
  EXPECT_EQ(shards->class_names(), folder->class_names());
  EXPECT_EQ(shards->blocks().size(), packed->done.shards);
  EXPECT_TRUE(shards->TakeMessages().empty());
  uint64_t bytes = 0;
  for (const std::string& name : Files()) {
    if (!name.ends_with(".tar")) continue;
    bytes += fs::file_size(fs::path(options_.output) / name);
    EXPECT_LE(fs::file_size(fs::path(options_.output) / name), options_.shard_bytes + 1024);
  }
  EXPECT_EQ(bytes, packed->done.bytes + packed->done.shards * 1024);
}

TEST_F(PackTest, ShufflesBySeedAlone) {
  options_.shuffle_seed = 7;
  ASSERT_TRUE(Pack(options_, nullptr).ok());
  auto shuffled = ReadAll(*Open("out"));
  options_.force = true;
  ASSERT_TRUE(Pack(options_, nullptr).ok());
  EXPECT_EQ(ReadAll(*Open("out")), shuffled);
  auto sorted = ReadAll(*Open("in"));
  EXPECT_NE(shuffled, sorted);
  std::sort(shuffled.begin(), shuffled.end());
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(shuffled, sorted);
}

TEST_F(PackTest, LeavesANonEmptyDirectoryAloneUnlessForced) {
  root_.Write("out/mine.txt", "keep");
  root_.Write("out/shard-000099.tar", "of an earlier pack");
  root_.Write("out/shard-000098.tar.part", "of a killed one");
  auto refused = Pack(options_, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text, HasSubstr("is not empty"));
  EXPECT_EQ(Files().size(), 3u);
  options_.force = true;
  options_.shard_bytes = 1'000'000;
  ASSERT_TRUE(Pack(options_, nullptr).ok());
  EXPECT_THAT(Files(), ElementsAre("classes.json", "mine.txt", "shard-000000.tar", "shard-000000.tar.idx"));
}

TEST_F(PackTest, NeverReplacesTheShardsThatItPacks) {
  ASSERT_TRUE(Pack(options_, nullptr).ok());
  const auto before = Files();
  options_.force = true;
  for (const std::string& source : {root_ / "out", root_ / "out/shard-000000.tar", root_ / "out/./"}) {
    options_.source.paths = {source};
    auto refused = Pack(options_, nullptr);
    ASSERT_FALSE(refused.ok()) << source;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(Files(), before);
  }
}

TEST_F(PackTest, AnInterruptLeavesWholeShardsOnly) {
  auto stopped = Pack(options_, [](const PackProgress& progress) { return progress.samples < 12; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(stopped.error().text, HasSubstr("complete shards are in"));
  for (const std::string& name : Files()) EXPECT_FALSE(name.ends_with(".part")) << name;
  auto shards = Open("out");
  auto all = ReadAll(*Open("in"));
  ASSERT_LT(shards->size(), 12u);
  all.resize(shards->size());
  EXPECT_EQ(ReadAll(*shards), all);
}

TEST_F(PackTest, NamesAVanishedFile) {
  auto stopped =
      Pack(options_, [this](const PackProgress&) { return fs::remove(root_ / "in/cat/8.PNG") || true; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.error().text, HasSubstr("in/cat/8.PNG"));
}

// A file that may not grow fails as a full disk does, but for the code.
TEST_F(PackTest, AShardThatCannotBeWrittenIsRemoved) {
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {4000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto full = Pack(options_, nullptr);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(full.ok());
  EXPECT_THAT(full.error().text, HasSubstr("cannot write"));
  EXPECT_THAT(Files(), IsEmpty());  // so that the next attempt needs no --force
}

TEST_F(PackTest, AShardWhoseIndexCannotBeWrittenIsNotLeftBehind) {
  // In the index's place comes a directory, which no file can be renamed to.
  auto stopped = Pack(options_, [this](const PackProgress& progress) {
    if (progress.shards == 1) fs::create_directory(root_ / "out/shard-000001.tar.idx");
    return true;
  });
  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.error().text, HasSubstr("one complete shard is in"));
  EXPECT_THAT(Files(), ElementsAre("classes.json", "shard-000000.tar", "shard-000000.tar.idx",
                                   "shard-000001.tar.idx"));
}

TEST_F(PackTest, PacksAFileWithAnEndlessExtension) {
  const std::string path = root_.Write("long/a." + std::string(200, 'e'), "an image");
  root_.Write("long.csv", "path,label\n" + path + ",1\n");
  options_.source.paths = {root_ / "long.csv"};
  auto packed = Pack(options_, nullptr);
  ASSERT_TRUE(packed.ok()) << ToString(packed.error());
  EXPECT_EQ(ReadAll(*Open("out")), ReadAll(*Open("long.csv")));
}

TEST_F(PackTest, ANameTooLongForATarFileIsAnError) {
  auto shard = TarWriter::Create(root_ / "x.tar");
  ASSERT_TRUE(shard.ok());
  const std::string longest(96, 'e');
  EXPECT_TRUE(shard->Add("key", std::array{TarWriter::Member{longest, {}}}).ok());
  const uint64_t bytes = shard->bytes();
  const auto added = shard->Add("key", std::array{TarWriter::Member{longest + "e", {}}});
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(shard->bytes(), bytes);
}

TEST_F(PackTest, RefusesInvalidOutputsAndShardSizes) {
  options_.output = "s3://bucket/packed";
  auto remote = Pack(options_, nullptr);
  ASSERT_FALSE(remote.ok());
  EXPECT_THAT(remote.error().text, HasSubstr("s3://bucket/packed"));
  EXPECT_FALSE(fs::exists("s3:"));
  options_.output = root_ / "out";
  options_.shard_bytes = 0;
  auto nothing = Pack(options_, nullptr);
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(options_.output));
}

}  // namespace
}  // namespace fullbore::loader
