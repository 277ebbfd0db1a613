#include "loader/core/engine/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fullbore::loader {
namespace {

// A pipeline in three numbers: what a batch costs in a read, on a core, and at the consumer.
struct Pipeline {
  double read_ms = 0, core_ms = 0, step_ms = 0;
  int cores = 64;

  // What a second with this setting shows: the slowest of reading, cores and consumer decides.
  Window Second(const ThreadSetting& setting) const {
    const double threads = setting.decode_threads + setting.read_threads;
    const double decoding =
        std::min({static_cast<double>(setting.decode_threads), threads, static_cast<double>(cores)});
    const double by_cores = core_ms > 0 ? decoding / core_ms : 1e9;
    const double by_threads = threads / (read_ms + core_ms);
    const double rate = std::min({by_cores, by_threads, 1 / step_ms});  // batches a ms
    Window window;
    window.wall_ns = 1'000'000'000;
    window.samples = static_cast<uint64_t>(rate * 1000);
    window.consumer_wait_ns = static_cast<uint64_t>(1e9 * std::max(0.0, 1 - rate * step_ms));
    window.core_ns = static_cast<uint64_t>(1e9 * rate * core_ms);
    window.idle_ns = static_cast<uint64_t>(1e9 * std::max(0.0, threads - rate * (read_ms + core_ms)));
    if (window.consumer_wait_ns > 1e7) window.idle_ns = 0;
    return window;
  }

  ThreadSetting Settle(Tuner& tuner, int seconds = 60) const {
    for (int i = 0; i < seconds; ++i) tuner.After(Second(tuner.setting()));
    return tuner.setting();
  }
};

TEST(Tuner, GivesCoresBackThatTheConsumerDoesNotNeed) {
  Tuner tuner({.max_decode_threads = 16});
  const ThreadSetting settled = Pipeline{.core_ms = 30, .step_ms = 10}.Settle(tuner);
  EXPECT_GE(settled.decode_threads, 3);
  EXPECT_LE(settled.decode_threads, 4);
  EXPECT_EQ(settled.read_threads, 0);
}

TEST(Tuner, TakesCoresAgainWhenTheConsumerBecomesFaster) {
  Tuner tuner({.max_decode_threads = 16});
  Pipeline{.core_ms = 30, .step_ms = 10}.Settle(tuner);
  EXPECT_GE((Pipeline{.core_ms = 30, .step_ms = 4}.Settle(tuner, 200).decode_threads), 8);
}

TEST(Tuner, AddsReadersOnlyWhereReadingBinds) {
  Tuner tuner({.max_decode_threads = 2, .max_read_threads = 32});
  const ThreadSetting settled = Pipeline{.read_ms = 80, .core_ms = 5, .step_ms = 10}.Settle(tuner);
  EXPECT_GE(settled.decode_threads + settled.read_threads, 9);
  EXPECT_LE(settled.read_threads, 20);
}

TEST(Tuner, TakesReadersBackThatDoNotHelp) {
  // A disk whose rate does not depend on the number of readers: the window is the same whatever the setting.
  Tuner tuner({.max_decode_threads = 2, .max_read_threads = 32});
  const Window stuck{
      .wall_ns = 1'000'000'000, .samples = 5, .consumer_wait_ns = 900'000'000, .core_ns = 10'000'000};
  int most = 0;
  for (int i = 0; i < 100; ++i) most = std::max(most, tuner.After(stuck).read_threads);
  EXPECT_LE(most, 2);
}

TEST(Tuner, NeverLeavesTheThreadsThatTheUserChose) {
  Tuner tuner({.max_decode_threads = 3, .decode_threads_are_fixed = true});
  EXPECT_EQ((Pipeline{.core_ms = 1, .step_ms = 10}.Settle(tuner).decode_threads), 3);
  EXPECT_EQ((Pipeline{.core_ms = 100, .step_ms = 10}.Settle(tuner).decode_threads), 3);
}

TEST(Tuner, MakesRoomForBursts) {
  Tuner tuner({.max_decode_threads = 2});
  const Window bursts{.wall_ns = 1'000'000'000,
                      .samples = 50,
                      .consumer_wait_ns = 100'000'000,
                      .core_ns = 500'000'000,
                      .idle_ns = 900'000'000};
  for (int i = 0; i < 20; ++i) tuner.After(bursts);
  EXPECT_EQ(tuner.setting().ready_batches, 8);
}

TEST(Tuner, RestsWhenNothingHelps) {
  Tuner tuner({.max_decode_threads = 2});
  const Pipeline too_slow{.core_ms = 100, .step_ms = 10};
  const ThreadSetting settled = too_slow.Settle(tuner);
  EXPECT_EQ(settled.decode_threads, 2);
  EXPECT_EQ(settled.read_threads, 0);
}

}  // namespace
}  // namespace fullbore::loader
