// The loader's promises, over a source made for the purpose: every sample holds its own number.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <thread>

#include "loader/core/engine/testing/loader_of_numbers.h"
#include "loader/core/source/testing/no_more_threads.h"

namespace fullbore::loader {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::LoaderTest;
using testing::Numbers;

constexpr milliseconds kPatience(20'000);  // a hang, on any machine

TEST_F(LoaderTest, DeliversEverySampleOnceAnEpoch) {
  Loader loader = Over(103, {.batch_size = 10});
  const auto first = Epoch(loader), second = Epoch(loader);
  EXPECT_EQ(first.size(), 11u);
  EXPECT_EQ(Flat(first), UpTo(103));
  EXPECT_EQ(Flat(second), UpTo(103));
  EXPECT_NE(first, second);
}

TEST_F(LoaderTest, KeepsTheSourcesOrderWithoutShuffle) {
  Loader loader = Over(10, {.batch_size = 4, .shuffle = false, .threads = 8});
  EXPECT_EQ(Epoch(loader), (std::vector<std::vector<uint64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
}

TEST_F(LoaderTest, DeliversTheSameBatchesWithAnyNumberOfThreads) {
  behaviour_->slow_evens = true;  // so that threads overtake each other
  std::vector<std::vector<std::vector<uint64_t>>> runs;
  for (int threads : {1, 2, 8, 24}) {
    Loader loader = Over(200, {.batch_size = 7, .seed = 5, .threads = threads});
    runs.push_back(Epoch(loader));
  }
  for (const auto& run : runs) EXPECT_EQ(run, runs[0]);
}

TEST_F(LoaderTest, GoesOnAfterAnyBatchExactlyWhereItStopped) {
  const LoaderOptions options{.batch_size = 6, .seed = 9};
  Loader whole = Over(50, options);
  const auto all = Epoch(whole), next_epoch = Epoch(whole);
  for (size_t stop = 0; stop <= all.size(); ++stop) {
    Loader before = Over(50, options);
    auto seen = Epoch(before, stop);
    const auto state = LoaderState::FromJson(before.State().ToJson());
    ASSERT_TRUE(state.ok());
    Loader after = Over(50, options);
    ASSERT_TRUE(after.Restore(*state).ok());
    const auto rest = Epoch(after);
    seen.insert(seen.end(), rest.begin(), rest.end());
    EXPECT_EQ(seen, all);
    EXPECT_EQ(Epoch(after), next_epoch);
  }
}

TEST_F(LoaderTest, GoesOnWithAnotherNumberOfRanksWithoutLossOrRepeat) {
  std::multiset<uint64_t> seen;
  LoaderState state;
  for (int rank = 0; rank < 2; ++rank) {
    Loader loader = Over(101, {.batch_size = 5, .seed = 3, .rank = rank, .world_size = 2});
    seen.merge(Flat(Epoch(loader, 4)));
    state = loader.State();
  }
  EXPECT_EQ(seen.size(), 40u);
  for (int rank = 0; rank < 3; ++rank) {
    Loader loader = Over(101, {.batch_size = 8, .seed = 3, .rank = rank, .world_size = 3});
    ASSERT_TRUE(loader.Restore(state).ok());
    seen.merge(Flat(Epoch(loader)));
  }
  EXPECT_EQ(seen, UpTo(101));
}

TEST_F(LoaderTest, RefusesAStateOfOtherData) {
  Loader loader = Over(10, {});
  const auto restored = loader.Restore({.samples = 11});
  ASSERT_FALSE(restored.ok());
  EXPECT_THAT(restored.error().text, HasSubstr("11"));
}

TEST_F(LoaderTest, LeavesBadSamplesOutAndNamesThem) {
  for (uint64_t id : {3, 50, 51, 99}) behaviour_->broken[id] = {ErrorCode::kCorrupt, "cut off", ""};
  Loader loader = Over(100, {.batch_size = 8, .bad_sample_budget = 0.05});
  auto expected = UpTo(100);
  for (uint64_t id : {3, 50, 51, 99}) expected.erase(id);
  EXPECT_EQ(Flat(Epoch(loader)), expected);
  std::set<std::string> names;
  for (const BadSample& bad : loader.bad_samples()) names.insert(bad.name);
  EXPECT_EQ(names, (std::set<std::string>{"number-3", "number-50", "number-51", "number-99"}));
  EXPECT_EQ(loader.TakeMessages().size(), 4u);
  EXPECT_TRUE(loader.TakeMessages().empty());
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // they end a process that asks for as much
TEST_F(LoaderTest, GoesOnAfterWhatADecoderThrows) {
  behaviour_->monsters = {2, 3, 11, 12, 13};
  Loader loader = Over(20, {.batch_size = 4, .bad_sample_budget = 1, .threads = 2});
  EXPECT_EQ(Flat(Epoch(loader)).size(), 15u);
  EXPECT_EQ(Flat(Epoch(loader)).size(), 15u);
  EXPECT_EQ(loader.bad_samples().size(), 10u);
}
#endif

TEST_F(LoaderTest, SaysThatNoThreadCanBeStartedAndTriesAgain) {
  Loader loader = Over(10, {});
  {
    const testing::NoMoreThreads here;
    const auto batch = loader.Next();
    ASSERT_FALSE(batch.ok());
    EXPECT_THAT(batch.error().text, HasSubstr("no thread could be started"));
  }
  EXPECT_EQ(Flat(Epoch(loader)), UpTo(10));
}

TEST_F(LoaderTest, FillsTheGapsOfBadSamplesWhereEveryBatchMustBeFull) {
  behaviour_->broken[3] = {ErrorCode::kCorrupt, "cut off", ""};
  Loader loader = Over(10, {.batch_size = 4, .pad_last = true});
  std::multiset<uint64_t> valid;
  for (;;) {
    auto batch = loader.Next();
    ASSERT_TRUE(batch.ok());
    if (!*batch) break;
    EXPECT_EQ((*batch)->rows, 4);
    for (const uint64_t id : IdsOf(**batch)) valid.insert(id);
  }
  auto expected = UpTo(10);
  expected.erase(3);
  EXPECT_EQ(valid, expected);
}

TEST_F(LoaderTest, GivesRanksEquallyManyBatchesEvenIfAllSamplesOfOneAreBad) {
  for (uint64_t id : {4, 5, 6, 7, 8}) behaviour_->broken[id] = {ErrorCode::kCorrupt, "cut off", ""};
  const LoaderOptions options{.batch_size = 4, .shuffle = false, .world_size = 2, .bad_sample_budget = 0.5};
  using Batches = std::vector<std::vector<uint64_t>>;
  Loader first = Over(16, options);
  EXPECT_EQ(Epoch(first), (Batches{{0, 1, 2, 3}, {9, 10, 11}}));
  LoaderOptions of_second = options;
  of_second.rank = 1;
  Loader second = Over(16, of_second);
  const auto stand_in = second.Next();
  ASSERT_TRUE(stand_in.ok() && *stand_in);
  EXPECT_EQ((*stand_in)->sample_ids, std::vector<uint64_t>{9}) << "the first good one behind the batch";
  EXPECT_EQ((*stand_in)->valid, std::vector<uint8_t>{0});
  EXPECT_TRUE(IdsOf(**stand_in).empty());
  EXPECT_EQ(Epoch(second), (Batches{{12, 13, 14, 15}}));
  EXPECT_EQ(second.bad_samples().size(), 4u) << "those of its own batches";
}

TEST_F(LoaderTest, EndsWhenTooManySamplesAreBad) {
  for (uint64_t id = 0; id < 20; ++id) behaviour_->broken[id] = {ErrorCode::kCorrupt, "cut off", ""};
  Loader loader = Over(100, {.batch_size = 10, .shuffle = false, .bad_sample_budget = 0.15});
  Result<std::optional<Batch>> batch = loader.Next();
  ASSERT_FALSE(batch.ok());
  EXPECT_THAT(batch.error().text, HasSubstr("more than the allowed 15 %"));
}

TEST_F(LoaderTest, RaisesTheFirstBadSampleWhenAskedToAndThenGoesOn) {
  behaviour_->broken[5] = {ErrorCode::kCorrupt, "cut off", ""};
  Loader loader = Over(8, {.batch_size = 4, .shuffle = false, .on_bad_sample = OnBadSample::kRaise});
  ASSERT_TRUE(loader.Next().ok());
  const auto bad = loader.Next();
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().text, HasSubstr("number-5: cut off"));
  const auto rest = Epoch(loader);
  EXPECT_EQ(rest, (std::vector<std::vector<uint64_t>>{{4, 6, 7}}));
}

TEST_F(LoaderTest, LosesNothingWhenTheStorageFailsForAWhile) {
  Loader loader = Over(40, {.batch_size = 4, .shuffle = false, .threads = 2});
  auto seen = Epoch(loader, 3);
  {
    const std::lock_guard lock(behaviour_->mutex);
    behaviour_->unavailable = 1;
  }
  bool failed = false;
  for (;;) {
    auto batch = loader.Next();
    if (!batch.ok()) {
      EXPECT_EQ(batch.error().code, ErrorCode::kUnavailable);
      failed = true;
      continue;
    }
    if (!*batch) break;
    seen.push_back(IdsOf(**batch));
  }
  EXPECT_TRUE(failed);
  EXPECT_EQ(Flat(seen), UpTo(40));
}

TEST_F(LoaderTest, NeverFillsABatchThatSomebodyStillReads) {
  Loader loader = Over(60, {.batch_size = 5, .shuffle = false});
  std::vector<Batch> kept;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (;;) {
      auto batch = loader.Next();
      ASSERT_TRUE(batch.ok());
      if (!*batch) break;
      kept.push_back(std::move(**batch));
    }
  }
  ASSERT_EQ(kept.size(), 24u);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(IdsOf(kept[i])[0], 5 * (i % 12));
}

TEST_F(LoaderTest, KeepsABatchReadableAfterTheLoaderIsGone) {
  std::optional<Batch> batch;
  {
    Loader loader = Over(10, {.batch_size = 5, .shuffle = false});
    batch = std::move(*loader.Next());
  }
  EXPECT_EQ(IdsOf(*batch), (std::vector<uint64_t>{0, 1, 2, 3, 4}));
}

TEST_F(LoaderTest, NeedsNoMoreMemoryInTheHundredthEpochThanInTheSecond) {
  // A fixed number of batches ahead: the tuner would keep more of them on a busy machine.
  Loader loader = Over(40, {.batch_size = 4, .threads = 2, .prefetch_batches = 2});
  Epoch(loader);
  Epoch(loader);
  const uint64_t early = loader.Stats().pool_bytes;
  for (int epoch = 2; epoch < 100; ++epoch) Epoch(loader);
  EXPECT_LE(loader.Stats().pool_bytes, early + 2 * 4096 * 2);  // a slot here is a page or two
}

TEST_F(LoaderTest, ReadsNoFurtherAheadThanItMay) {
  Loader loader = Over(1000, {.batch_size = 10, .threads = 2, .prefetch_batches = 3});
  ASSERT_TRUE(loader.Next().ok());
  for (auto left = kPatience; loader.Stats().ready_batches < 3 && left > milliseconds(0);
       left -= milliseconds(5)) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  std::this_thread::sleep_for(milliseconds(20));  // it would go on now
  const LoaderStats stats = loader.Stats();
  EXPECT_GE(stats.ready_batches, 3);
  EXPECT_LE(stats.ready_batches, 4);
  EXPECT_LE(stats.stages[0].samples, 60u);
}

TEST_F(LoaderTest, ReturnsWhenItsPatienceHasPassed) {
  behaviour_->Let(false);
  Loader loader = Over(10, {});
  const auto batch = loader.Next(milliseconds(20));
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code, ErrorCode::kTimeout);
  behaviour_->Let(true);
  EXPECT_EQ(Flat(Epoch(loader)), UpTo(10));
}

TEST_F(LoaderTest, StopsAWaitingConsumer) {
  behaviour_->Let(false);
  Loader loader = Over(10, {});
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(20));
    loader.Stop();
  });
  const auto batch = loader.Next();
  other.join();
  ASSERT_FALSE(batch.ok());
  EXPECT_THAT(batch.error().text, HasSubstr("stopped"));
  behaviour_->Let(true);
  loader.SetEpoch(3);
  EXPECT_EQ(Flat(Epoch(loader)), UpTo(10));
}

TEST_F(LoaderTest, EndsEvenIfAReadIsStuck) {
  behaviour_->Let(false);
  {
    Loader loader = Over(10, {.threads = 1});
    (void)loader.Next(milliseconds(10));
    std::unique_lock lock(behaviour_->mutex);
    behaviour_->changed.wait(lock, [&] { return behaviour_->inside == 1; });
  }  // returns, though its thread does not
  behaviour_->Let(true);
  std::unique_lock lock(behaviour_->mutex);
  EXPECT_TRUE(behaviour_->changed.wait_for(lock, kPatience, [&] { return behaviour_->inside == 0; }));
}

TEST_F(LoaderTest, TellsAForkedChildThatItHasNoLoader) {
  Loader loader = Over(10, {});
  ASSERT_TRUE(loader.Next().ok());
  const pid_t child = fork();
  if (child == 0) {
    const auto batch = loader.Next();
    { const Loader ended = std::move(loader); }  // must not wait for threads that this process lacks
    _exit(!batch.ok() && batch.error().code == ErrorCode::kUnavailable ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(loader.Next().ok());
}

TEST_F(LoaderTest, BeginsTheEpochThatIsSet) {
  Loader loader = Over(30, {.batch_size = 4});
  Epoch(loader);
  const auto one = Epoch(loader);
  Epoch(loader, 2);
  loader.SetEpoch(1);
  EXPECT_EQ(Epoch(loader), one);
}

TEST_F(LoaderTest, ServesFromMemoryWhatWasReadBefore) {
  LoaderOptions options{.batch_size = 4};
  options.source.memory_cache_bytes = 1 << 20;
  Loader loader = Over(20, options);
  Epoch(loader);
  for (uint64_t id = 0; id < 20; ++id) behaviour_->broken[id] = {ErrorCode::kNotFound, "vanished", ""};
  EXPECT_EQ(Flat(Epoch(loader)), UpTo(20));
}

TEST_F(LoaderTest, NamesTheInvalidOption) {
  const std::vector<std::pair<LoaderOptions, const char*>> wrong = {
      {{.batch_size = 0}, "batch_size is 0"},
      {{.rank = 2, .world_size = 2}, "rank 2 is impossible with world_size 2"},
      {{.threads = -1}, "threads -1"},
      {{.threads = 100'000}, "threads 100000"},
      {{.bad_sample_budget = 2}, "bad_sample_budget is 2"},
      {{.drop_last = true, .pad_last = true}, "drop_last and pad_last contradict each other"},
      {{.batch_size = 20, .drop_last = true}, "10 samples do not fill one batch of 20"},
  };
  for (const auto& [options, text] : wrong) {
    const auto loader = Loader::Over(std::make_unique<Numbers>(10, behaviour_), options);
    ASSERT_FALSE(loader.ok()) << text;
    EXPECT_THAT(loader.error().text, HasSubstr(text));
  }
  EXPECT_FALSE(Loader::Over(std::make_unique<Numbers>(0, behaviour_), {}).ok());
}

}  // namespace
}  // namespace fullbore::loader
