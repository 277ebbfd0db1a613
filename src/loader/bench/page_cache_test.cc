#include "loader/bench/page_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"

namespace fullbore::loader::bench {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class PageCacheTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, size_t bytes) {
    return root_.Write(name, std::string(bytes, 'x'));
  }

  const ScratchDirectory root_;
  const std::atomic<bool> stop_ = false;
};

TEST_F(PageCacheTest, FindsTheFilesBelowADirectoryAndNamesSingleOnes) {
  const std::string a = Write("cat/a.jpg", 10), b = Write("dog/b.jpg", 10), c = Write("c.tar", 10);
  EXPECT_THAT(LocalFiles({root_ / "cat", c}), UnorderedElementsAre(a, c));
  EXPECT_THAT(LocalFiles({root_.path()}), UnorderedElementsAre(a, b, c));
}

TEST_F(PageCacheTest, RemotePathsHaveNoLocalFiles) {
  EXPECT_THAT(LocalFiles({Write("c.tar", 10), "https://example.org/d.tar"}), IsEmpty());
}

TEST_F(PageCacheTest, SaysHowMuchIsStillInMemory) {
  const std::string file = Write("just-written", 1 << 20);
  const double dirty = DropFromPageCache({file}, stop_);
  EXPECT_GE(dirty, 0);
  EXPECT_LE(dirty, 1);
  // If nothing could be looked at, that does not prove that it is cold.
  EXPECT_EQ(DropFromPageCache({root_ / "absent"}, stop_), 1);
  EXPECT_EQ(DropFromPageCache({Write("empty", 0)}, stop_), 1);
}

}  // namespace
}  // namespace fullbore::loader::bench
