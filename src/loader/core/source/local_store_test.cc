#include "loader/core/source/local_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/testing/scratch_directory.h"

namespace fullbore::loader {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string ReadText(LocalStore& store, const StoredFile& file, uint64_t offset, size_t bytes) {
  std::vector<uint8_t> out(bytes);
  auto read = store.Read(file, offset, out);
  return read.ok() ? std::string(out.begin(), out.end()) : "bad: " + read.error().text;
}

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST(LocalStoreTest, ListsFilesWithTheirSizes) {
  ScratchDirectory root;
  root.Write("b/2", "22");
  root.Write("a", "1");
  LocalStore store;
  auto files = store.List(root.path());
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].path, root / "a");
  EXPECT_EQ((*files)[1].bytes, 2u);
  EXPECT_EQ(ReadText(store, (*files)[1], 1, 1), "2");
}

TEST(LocalStoreTest, TellsAFileThatIsCutFromOneThatIsShort) {
  ScratchDirectory root;
  const std::string path = root.Write("f", "0123456789");
  LocalStore store;
  auto file = store.Stat(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(ReadText(store, *file, 2, 3), "234");
  EXPECT_THAT(ReadText(store, *file, 8, 3), HasSubstr("ends at byte 10"));
  fs::resize_file(path, 4);
  EXPECT_THAT(ReadText(store, *file, 2, 2), HasSubstr("has changed since it was indexed"));
}

TEST(LocalStoreTest, AReplacedFileIsReadOnAsItWas) {
  ScratchDirectory root;
  const std::string path = root.Write("f", "old text");
  LocalStore store;
  auto file = store.Stat(path);
  EXPECT_EQ(ReadText(store, *file, 0, 3), "old");
  fs::rename(root.Write("g", "new text"), path);
  EXPECT_EQ(ReadText(store, *file, 4, 4), "text");
  auto replaced = store.Stat(path);
  EXPECT_EQ(ReadText(store, *replaced, 0, 3), "new");
  EXPECT_THAT(ReadText(store, *file, 0, 3), HasSubstr("has changed"));
}

TEST(LocalStoreTest, KeepsFewDescriptorsOpenAndLeaksNone) {
  ScratchDirectory root;
  const size_t before = OpenDescriptors();
  {
    LocalStore store;
    std::vector<uint8_t> buffer;
    constexpr int kFiles = 600;
    for (int i = 0; i < kFiles; ++i) {
      const std::string name = std::to_string(i);
      auto file = store.Stat(root.Write(name, name));
      EXPECT_EQ(ReadText(store, *file, 0, name.size()), name);
      EXPECT_EQ(*store.ReadWhole(file->path, buffer), name.size());
    }
    EXPECT_LE(store.open_files(), 256u);
    EXPECT_LE(OpenDescriptors(), before + store.open_files());
    for (int i = 0; i < kFiles; ++i) {
      const std::string name = std::to_string(i);
      EXPECT_EQ(ReadText(store, *store.Stat(root / name), 0, name.size()), name);
    }
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(LocalStoreTest, ManyThreadsReadManyFiles) {
  ScratchDirectory root;
  LocalStore store;
  std::vector<StoredFile> files;
  for (int i = 0; i < 300; ++i) {
    const std::string name = std::to_string(i + 1000);
    files.push_back(*store.Stat(root.Write(name, name)));
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < files.size(); ++i) {
        const size_t at = (i * 7 + t * 11) % files.size();
        wrong += ReadText(store, files[at], 0, 4) != std::to_string(at + 1000);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LocalStoreTest, TakesFileUrls) {
  ScratchDirectory root;
  const std::string path = root.Write("f", "abc");
  LocalStore store;
  std::vector<uint8_t> buffer(1);
  EXPECT_EQ(*store.ReadWhole("file://" + path, buffer), 3u);
  EXPECT_EQ(store.Stat("file://" + path)->bytes, 3u);
  EXPECT_EQ(store.ReadWhole(root / "absent", buffer).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace fullbore::loader
