#include "loader/core/source/container.h"

#include <gtest/gtest.h>

#include <atomic>

#include "loader/core/source/testing/no_more_threads.h"

namespace fullbore::loader {
namespace {

TEST(ForEachFile, WorksAloneWhereNoThreadCanBeStarted) {
  const testing::NoMoreThreads here;
  std::atomic<int> visited = 0;
  const auto done = ForEachFile(20, [&](size_t) -> Result<void> {
    ++visited;
    return {};
  });
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(visited, 20);
}

}  // namespace
}  // namespace fullbore::loader
