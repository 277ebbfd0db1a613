#include "explain/roofline/host_operators.h"

#include <gmock/gmock.h>

#include "explain/roofline/testing/made_trace.h"

namespace fullbore::roofline {
namespace {

using ::testing::DoubleEq;
using ::testing::Optional;
using timeline::SpanKind;

constexpr int64_t kUs = 1000;
const std::vector<timeline::StepBounds> kOneStep = {{0, 1000 * kUs}};

TEST(HostOperatorsTest, CallsOfOneNameAreAddedUpAndTheLongestComeFirst) {
  MadeTrace trace;
  trace.Span("aten::relu", 0, 30).Span("aten::linear", 30, 100).Span("aten::linear", 130, 200);

  const auto operators = HostOperators(trace.Finish(), kOneStep);

  ASSERT_EQ(operators.size(), 2U);
  EXPECT_EQ(operators[0].name, "aten::linear");
  EXPECT_EQ(operators[0].count, 2);
  EXPECT_EQ(operators[0].sum_ns, 300 * kUs);
  EXPECT_EQ(operators[1].name, "aten::relu");
}

TEST(HostOperatorsTest, WhatLiesOutsideTheStepsIsLeftOut) {
  MadeTrace trace;
  trace.Span("aten::linear", 0, 100).Span("aten::linear", 1100, 100);

  const auto operators = HostOperators(trace.Finish(), kOneStep);

  ASSERT_EQ(operators.size(), 1U);
  EXPECT_EQ(operators[0].count, 1);
}

TEST(HostOperatorsTest, TheBackwardPassGoesByTheNameOfItsNode) {
  MadeTrace trace;
  trace.Span("autograd::engine::evaluate_function: AddmmBackward0", 0, 100, SpanKind::kBackward);

  EXPECT_EQ(HostOperators(trace.Finish(), kOneStep).at(0).name, "AddmmBackward0");
}

TEST(HostOperatorsTest, ArithmeticIsThatOfTheInnermostCallsCountedOnce) {
  MadeTrace trace;
  trace.Span("aten::linear", 0, 100);
  trace.Op("aten::linear", 0, 100, {Tensor({4, 8}), Tensor({2, 8}), Tensor({2})});
  trace.Op("aten::mm", 10, 80, {Tensor({4, 8}), Tensor({8, 2})});

  EXPECT_THAT(HostOperators(trace.Finish(), kOneStep).at(0).flops, Optional(DoubleEq(2 * 4 * 8 * 2)));
}

TEST(HostOperatorsTest, WorkThatIsNotKnownIsAbsent) {
  MadeTrace trace;
  trace.Span("mylib::own_operator", 0, 100);

  EXPECT_EQ(HostOperators(trace.Finish(), kOneStep).at(0).flops, std::nullopt);
}

TEST(HostOperatorsTest, OtherSpansAreNoOperators) {
  MadeTrace trace;
  trace.Span("enumerate(DataLoader)", 0, 500, SpanKind::kLoader)
      .Span("my range", 500, 100, SpanKind::kAnnotation);

  EXPECT_TRUE(HostOperators(trace.Finish(), kOneStep).empty());
}

}  // namespace
}  // namespace fullbore::roofline
