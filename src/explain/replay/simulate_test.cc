#include "explain/replay/simulate.h"

#include <gmock/gmock.h>

#include "explain/replay/testing/made_graph.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::Work;
using testing::MadeGraph;

TEST(SimulateTest, ANodeBeginsWhenTheLastOfWhatItWaitsForHasCome) {
  MadeGraph made;
  const auto a = made.Add(Work::kHost, 10);
  const auto b = made.Add(Work::kDevice, 50, {{a, Dependency::kLaunch, 4}});
  made.Add(Work::kHost, 5, {{a}, {b, Dependency::kSync, 1}});
  EXPECT_THAT(Begins(made.Graph()), ::testing::ElementsAre(0, 14'000, 65'000));
}

TEST(SimulateTest, AnEdgeMayCountFromTheBeginOfANode) {
  MadeGraph made;
  const auto call = made.Add(Work::kLaunch, 10);
  made.Add(Work::kDevice, 50, {{call, Dependency::kLaunch, 4, true}});
  EXPECT_THAT(Begins(made.Graph()), ::testing::ElementsAre(0, 4'000));
}

TEST(SimulateTest, TheStepIsTheMeanBetweenItsEnds) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto first = made.Add(Work::kHost, 30, {{begin}});
  const auto middle = made.Add(Work::kStepEnd, 0, {{first}});
  const auto second = made.Add(Work::kHost, 50, {{middle}});
  made.Add(Work::kStepEnd, 0, {{second}});
  EXPECT_DOUBLE_EQ(StepNs(made.Graph()), 40'000);
}

TEST(SimulateTest, WithoutTwoEndsThereIsNoStep) {
  MadeGraph made;
  made.Add(Work::kStepEnd, 0);
  EXPECT_DOUBLE_EQ(StepNs(made.Graph()), 0);
}

}  // namespace
}  // namespace fullbore::replay
