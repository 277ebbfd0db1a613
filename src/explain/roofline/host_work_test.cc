#include "explain/roofline/host_work.h"

#include <gmock/gmock.h>

#include "explain/roofline/testing/made_trace.h"

namespace fullbore::roofline {
namespace {

using record::HostWork;
using timeline::SpanKind;

constexpr int64_t kUs = 1000;
const std::vector<timeline::StepBounds> kOneStep = {{0, 1000 * kUs}};
constexpr ElementType kF64 = ElementType::kFloat64;
constexpr int64_t kRows = 100'000, kColumns = 64;

HostWork WorkIn(MadeTrace& trace) { return HostWorkOf(trace.Finish(), kOneStep).value(); }

OperatorInput ATable() { return Tensor({kRows, kColumns}); }

// A lookup of `used` rows, its dense gradient (100 us, of which 80 fill it) and an update (300 us).
MadeTrace& LookUp(MadeTrace& trace, int64_t used = 320,
                  std::vector<OperatorInput> update = {ATable(), ATable()}, const char* step = "aten::add_") {
  trace.Op("aten::embedding", 0, 50, {ATable(), Tensor({used}, kI64)});
  trace.Op("aten::embedding_dense_backward", 100, 100,
           {Tensor({used, kColumns}), Tensor({used}, kI64), Value(std::to_string(kRows))});
  trace.Op("aten::zero_", 110, 80, {ATable()});
  trace.Span("Optimizer.step#SGD.step", 400, 500, SpanKind::kOptimizer);
  trace.Op(step, 420, 300, std::move(update));
  return trace;
}

TEST(HostWorkTest, ATableCostsItsDenseGradientAndItsUpdate) {
  MadeTrace trace;
  const HostWork work = WorkIn(LookUp(trace));

  ASSERT_EQ(work.tables.size(), 1U);
  EXPECT_EQ(work.tables[0].rows, kRows);
  EXPECT_EQ(work.tables[0].columns, kColumns);
  EXPECT_EQ(work.tables[0].used, 320);
  EXPECT_EQ(work.tables[0].ns, 400 * kUs);
  EXPECT_EQ(work.stepped_ns, 1000 * kUs);
}

TEST(HostWorkTest, OfAnUpdateOfAllParametersTheTablesPartCounts) {
  MadeTrace trace;
  const HostWork work = WorkIn(LookUp(trace, 320, {List(4, 2 * kRows * kColumns)}, "aten::_fused_adam_"));

  ASSERT_EQ(work.tables.size(), 1U);
  EXPECT_EQ(work.tables[0].ns, (100 + 150) * kUs);
}

TEST(HostWorkTest, BagsAndIndicesAreLookupsToo) {
  MadeTrace bags;
  bags.Op("aten::_embedding_bag_dense_backward", 0, 100,
          {Tensor({32, kColumns}), Tensor({320}, kI64), Tensor({320}, kI64), Tensor({32}, kI64),
           Tensor({32}, kI64), Value(std::to_string(kRows))});
  MadeTrace indices;
  indices.Op("aten::_index_put_impl_", 0, 100, {ATable(), Value(""), Tensor({320, kColumns})});
  for (MadeTrace* trace : {&bags, &indices}) {
    trace->Span("Optimizer.step#SGD.step", 400, 500, SpanKind::kOptimizer);
    trace->Op("aten::add_", 420, 300, {ATable(), ATable()});
    const HostWork work = WorkIn(*trace);
    ASSERT_EQ(work.tables.size(), 1U);
    EXPECT_EQ(work.tables[0].used, 320);
    EXPECT_EQ(work.tables[0].ns, 400 * kUs);
  }
}

TEST(HostWorkTest, ATableThatIsMultipliedTooHasAGradientInAllRows) {
  MadeTrace trace;
  LookUp(trace).Op("aten::mm", 210, 100, {Tensor({16, kColumns}), Tensor({kColumns, kRows})});

  EXPECT_TRUE(WorkIn(trace).tables.empty());
}

TEST(HostWorkTest, WhatNoOptimizerUpdatesIsNoTable) {
  MadeTrace trace;
  trace.Op("aten::scatter_add_", 0, 100,
           {ATable(), Value("0"), Tensor({320}, kI64), Tensor({320, kColumns})});

  EXPECT_TRUE(WorkIn(trace).tables.empty());
}

// `count` parts of a tensor of 100 x 64 x 16 elements, a pass over all of them for each.
MadeTrace& Parts(MadeTrace& trace, int count, const char* node) {
  const std::string span = std::string("autograd::engine::evaluate_function: ") + node;
  for (int i = 0; i < count; ++i) {
    trace.Span(span.c_str(), 20 * i, 20, SpanKind::kBackward);
    trace.Op("aten::fill_", 20 * i + 5, 10, {Tensor({100, 64, 16})});
  }
  return trace;
}

TEST(HostWorkTest, PartsThatAreTakenOrWrittenOneByOneArePassesOverTheWhole) {
  for (const char* node : {"SelectBackward0", "SliceBackward0", "torch::autograd::CopySlices"}) {
    MadeTrace trace;
    const HostWork work = WorkIn(Parts(trace, 10, node));
    ASSERT_EQ(work.parts.size(), 1U);
    EXPECT_EQ(work.parts[0].node, node);
    EXPECT_EQ(work.parts[0].count, 10);
    EXPECT_EQ(work.parts[0].elements, 100 * 64 * 16);
    EXPECT_EQ(work.parts[0].ns, 200 * kUs);
  }
}

TEST(HostWorkTest, AFewPartsAndOtherNodesAreNoLoop) {
  MadeTrace few, others;
  EXPECT_TRUE(WorkIn(Parts(few, 3, "SelectBackward0")).parts.empty());
  EXPECT_TRUE(WorkIn(Parts(others, 10, "UnbindBackward0")).parts.empty());
}

TEST(HostWorkTest, DoublePrecisionCountsWhereThereIsEnoughOfIt) {
  MadeTrace trace;
  trace.Op("aten::mm", 0, 100, {Tensor({64, 64}, kF64), Tensor({64, 64}, kF64)})
      .Op("aten::add_", 100, 50, {Tensor({4}, kF64), Tensor({4}, kF64)})
      .Op("aten::mm", 200, 100, {Tensor({64, 64}), Tensor({64, 64})});

  EXPECT_EQ(WorkIn(trace).float64_ns, 100 * kUs);
}

TEST(HostWorkTest, ACopyThatOnlyChangesTheOrderOfElementsIsACopyBetweenLayouts) {
  const auto images = [](std::vector<int64_t> strides, ElementType type = kF32) {
    return Tensor({8, 3, 64, 64}, type, std::move(strides));
  };
  const std::vector<int64_t> rows = {12288, 4096, 64, 1}, channels_last = {12288, 1, 192, 3};
  MadeTrace trace;
  trace.Op("aten::copy_", 0, 100, {images(rows), images(channels_last)})
      .Op("aten::copy_", 200, 100, {images(rows), images(rows)})
      .Op("aten::copy_", 400, 100, {images(rows), images(channels_last, kF64)})
      .Op("aten::copy_", 600, 100, {images(rows), images({0, 0, 64, 1})});

  const HostWork work = WorkIn(trace);
  EXPECT_EQ(work.relaid, 1);
  EXPECT_EQ(work.relaid_ns, 100 * kUs);
}

TEST(HostWorkTest, WithoutShapesNothingIsKnown) {
  MadeTrace trace;
  trace.Span("aten::linear", 0, 100);

  EXPECT_FALSE(HostWorkOf(trace.Finish(), kOneStep));
}

}  // namespace
}  // namespace fullbore::roofline
