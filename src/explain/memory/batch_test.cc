#include "explain/memory/batch.h"

#include <gtest/gtest.h>

#include "explain/memory/testing/events.h"

namespace fullbore::memory {
namespace {

constexpr int64_t kMiB = kTestMiB;
enum Stack : StackIndex { kNoLine, kModel, kForward, kClip };

MemorySnapshot WithStacks() {
  MemorySnapshot snapshot;
  snapshot.frames = {{"/home/me/train.py", "main", 3},
                     {"/venv/site-packages/torch/nn/modules/module.py", "_call_impl", 1773},
                     {"/venv/site-packages/torch/nn/utils/clip_grad.py", "clip_grad_norm_", 30}};
  snapshot.stacks = {{}, {0}, {1, 0}, {2, 0}};
  return snapshot;
}

// What each of eight steps asks for, and gives back at its end.
struct Request {
  StackIndex stack = 0;
  int64_t bytes = 0;
  StackIndex freed_by = 0;
};

// Whether each of them is said to grow, beside weights of 30 MiB.
std::vector<bool> GrowsIn(const std::vector<Request>& requests) {
  DeviceMaker maker;
  maker.Allocate(0, 30 * kMiB, kModel);
  for (int step = 0; step < 8; ++step) {
    for (size_t i = 0; i < requests.size(); ++i)
      maker.Allocate((i + 1) << 32, requests[i].bytes, requests[i].stack);
    for (size_t i = 0; i < requests.size(); ++i) {
      maker.Do(Event::Action::kFreeRequested, (i + 1) << 32, requests[i].bytes, requests[i].freed_by);
      maker.Do(Event::Action::kFree, (i + 1) << 32, requests[i].bytes);
    }
  }
  maker.Stands(0, 30 * kMiB, {{0, 30 * kMiB}});
  const Device device = maker.Take();
  const auto grows = GrowWithTheBatch(WithStacks(), HistoryOf(device), device.events.size());
  EXPECT_FALSE(grows[0]) << "the weights";
  return {grows.begin() + 1, grows.begin() + 1 + static_cast<ptrdiff_t>(requests.size())};
}

TEST(BatchTest, ActivationsGrowAndGradientsDoNot) {
  EXPECT_EQ(
      GrowsIn({{kForward, 40 * kMiB, kNoLine}, {kNoLine, 30 * kMiB, kModel}, {kNoLine, 40 * kMiB, kNoLine}}),
      (std::vector{true, false, true}));
}

TEST(BatchTest, TemporariesAsLargeAsTheWeightsDoNot) {
  EXPECT_EQ(GrowsIn({{kClip, 30 * kMiB, kClip}, {kNoLine, 30 * kMiB, kNoLine}}), (std::vector{false, false}));
}

TEST(BatchTest, AnActivationAsLargeAsTheWeightsIsToldByItsModule) {
  // And its gradient, which the backward pass gives back, from that of the weights.
  EXPECT_EQ(
      GrowsIn({{kForward, 30 * kMiB, kNoLine}, {kNoLine, 30 * kMiB, kNoLine}, {kNoLine, 30 * kMiB, kModel}}),
      (std::vector{true, true, false}));
}

TEST(BatchTest, WhatEachStepKeepsGrows) {
  DeviceMaker maker;
  maker.Allocate(0, 30 * kMiB, kModel).Stands(0, 30 * kMiB, {{0, 30 * kMiB}});
  for (uint64_t step = 1; step <= 8; ++step)
    maker.Allocate(step << 32, 12 * kMiB, kForward).Stands(step << 32, 12 * kMiB, {{step << 32, 12 * kMiB}});
  const Device device = maker.Take();
  const auto grows = GrowWithTheBatch(WithStacks(), HistoryOf(device), device.events.size());
  EXPECT_FALSE(grows[0]);
  EXPECT_TRUE(grows[1]);
  EXPECT_TRUE(grows[8]);
}

}  // namespace
}  // namespace fullbore::memory
