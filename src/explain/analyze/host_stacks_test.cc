#include "explain/analyze/host_stacks.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "explain/analyze/testing/scene.h"

namespace fullbore::analyze {
namespace {

std::string TextOf(Scene& scene) { return ToJson(HostStacks(RankTrace(scene.trace()))).dump(); }

TEST(HostStacksTest, CallsOfOneNameWithinOneCallerAreOne) {
  Scene scene;
  scene.Span("train.py(3): step", 0, 100, timeline::SpanKind::kPython)
      .Span("aten::linear", 10, 30)
      .Span("aten::linear", 40, 60)
      .Span("aten::relu", 60, 70);
  EXPECT_EQ(TextOf(scene), R"(["rank 0",100000,0,[["main",100000,0,[["train.py(3): step",100000,50000,[)"
                           R"(["aten::linear",40000,40000,[]],["aten::relu",10000,10000,[]]]]]]]])");
}

TEST(HostStacksTest, StepsAreOnePlaceWhateverTheirNumber) {
  Scene scene;
  scene.Span("ProfilerStep#7", 0, 10).Span("ProfilerStep#8", 10, 30);
  EXPECT_EQ(TextOf(scene), R"(["rank 0",30000,0,[["main",30000,0,[["ProfilerStep",30000,30000,[]]]]]])");
}

TEST(HostStacksTest, ACallThatOutlastsItsCallerEndsWithIt) {
  Scene scene;
  scene.Span("outer", 0, 10).Span("inner", 5, 15);
  EXPECT_EQ(TextOf(scene), R"(["rank 0",10000,0,[["main",10000,0,[["outer",10000,5000,[)"
                           R"(["inner",5000,5000,[]]]]]]]])");
}

TEST(HostStacksTest, WhatIsTooShortToBeSeenIsPartOfItsCaller) {
  Scene scene;
  scene.Span("outer", 0, 100'000).Span("inner", 5, 15);
  const HostStack root = HostStacks(RankTrace(scene.trace()));
  EXPECT_TRUE(root.calls.at(0).calls.at(0).calls.empty());
}

TEST(HostStacksTest, ATraceWithoutHostHasNoStacks) {
  Scene scene;
  EXPECT_EQ(TextOf(scene), R"(["rank 0",0,0,[]])");
}

}  // namespace
}  // namespace fullbore::analyze
