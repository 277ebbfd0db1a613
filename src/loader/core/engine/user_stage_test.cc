// A user's own stage: a function that the loader calls for every finished row.
#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "base/clock.h"
#include "loader/core/engine/testing/loader_of_numbers.h"

namespace fullbore::loader {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class UserStageTest : public testing::LoaderTest {};

TEST_F(UserStageTest, RunsTheUsersStageOnEveryRow) {
  Loader loader = Over(12, {.batch_size = 5, .shuffle = false, .threads = 2}, [](Row& row) -> Result<void> {
    if (row.sample_id == 7) return Error{ErrorCode::kInvalidArgument, "seven is not wanted", ""};
    auto* values = static_cast<int64_t*>(row.fields[0].data);
    values[1] = -values[0];
    return {};
  });
  std::vector<int64_t> values;
  for (;;) {
    auto batch = loader.Next();
    ASSERT_TRUE(batch.ok());
    if (!*batch) break;
    for (int64_t row = 0; row < (*batch)->rows; ++row) {
      values.push_back(static_cast<const int64_t*>((*batch)->fields[0].data)[2 * row + 1]);
    }
  }
  EXPECT_EQ(values, (std::vector<int64_t>{0, -1, -2, -3, -4, -5, -6, -8, -9, -10, -11}));
  ASSERT_EQ(loader.bad_samples().size(), 1u);
  EXPECT_THAT(loader.bad_samples()[0].error.text, HasSubstr("seven"));
}

TEST_F(UserStageTest, TellsTheUsersStagesWaitsFromItsWork) {
  constexpr int kRows = 10;
  const auto stage_of = [&](const RowFunction& function) {
    Loader loader = Over(kRows, {.batch_size = kRows, .threads = 1}, function);
    EXPECT_EQ(Epoch(loader).size(), 1u);
    const LoaderStats stats = loader.Stats();
    const auto user = std::find_if(stats.stages.begin(), stats.stages.end(),
                                   [](const StageStats& stage) { return stage.name == "user"; });
    EXPECT_NE(user, stats.stages.end());
    return *user;
  };
  const StageStats waits = stage_of([](Row&) -> Result<void> {
    std::this_thread::sleep_for(milliseconds(2));
    return {};
  });
  EXPECT_GE(waits.blocked_ns, kRows * 2'000'000u - waits.busy_ns);
  EXPECT_GT(waits.blocked_ns, waits.busy_ns);
  const StageStats works = stage_of([](Row&) -> Result<void> {
    for (const int64_t end = ThreadCpuNs() + 2'000'000; ThreadCpuNs() < end;) continue;
    return {};
  });
  EXPECT_GE(works.busy_ns, kRows * 2'000'000u);
}

TEST_F(UserStageTest, TakesAnExceptionInTheUsersStageForABadSample) {
  Loader loader = Over(12, {.batch_size = 4}, [](Row& row) -> Result<void> {
    if (row.sample_id == 7) throw std::runtime_error("thrown");
    return {};
  });
  EXPECT_EQ(Flat(Epoch(loader)).size(), 11u);
}

TEST_F(UserStageTest, GivesTheUsersStageTheSameSeedWhateverTheThreads) {
  std::array<std::map<uint64_t, uint64_t>, 2> seeds;
  for (const int threads : {1, 2}) {
    std::mutex mutex;
    Loader loader = Over(20, {.batch_size = 4, .threads = threads}, [&](Row& row) -> Result<void> {
      const std::lock_guard lock(mutex);
      if (row.epoch == 0) seeds[static_cast<size_t>(threads - 1)][row.sample_id] = row.random_seed;
      return {};
    });
    Epoch(loader);
  }
  EXPECT_EQ(seeds[0].size(), 20u);
  EXPECT_EQ(seeds[0], seeds[1]);
}

}  // namespace
}  // namespace fullbore::loader
