#include "explain/analyze/trace_diff.h"

#include <gmock/gmock.h>

#include "explain/analyze/testing/scene.h"

namespace fullbore::analyze {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

TraceSum SumOf(Scene& scene) {
  scene.trace().Finish();
  TraceSum sum;
  sum.Add(scene.trace());
  return sum;
}

TEST(TraceDiffTest, NamesWhatWasAddedRemovedAndChanged) {
  Scene before, after;
  before.Op("gemm", 0, 10, 30).Op("relu_elementwise", 1, 30, 31).Op("old", 2, 31, 35).Op("same", 3, 35, 45);
  after.Op("gemm", 0, 10, 20)
      .Op("relu_elementwise", 1, 30, 31)
      .Op("relu_elementwise", 2, 31, 32)
      .Op("new", 3, 32, 38);
  after.Op("same", 4, 40, 50);
  const Table table = DiffOf(SumOf(before), SumOf(after));
  EXPECT_THAT(Rows(table, {"name", "change", "count_before", "count_after", "change_ns"}),
              UnorderedElementsAre("gemm, faster, 1, 1, -10000", "new, added, 0, 1, 6000",
                                   "old, removed, 1, 0, -4000", "relu_elementwise, more, 1, 2, 1000",
                                   "same, same, 1, 1, 0"));
  EXPECT_THAT(Rows(table, {"name"}).front(), "gemm");
}

TEST(TraceDiffTest, ComparesByTheStepWhereBothMarkTheirs) {
  Scene before, after;
  before.Step(1, 0, 50).Step(2, 50, 100).Op("gemm", 0, 10, 30).Op("gemm", 51, 60, 80);
  after.Step(1, 0, 50).Op("gemm", 0, 10, 30);
  const Table table = DiffOf(SumOf(before), SumOf(after));
  EXPECT_THAT(Rows(table, {"name", "change", "count_before", "count_after"}),
              ElementsAre("gemm, same, 1, 1"));
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("one step (2 steps before, 1 after)")));
}

TEST(TraceDiffTest, OperatorsAreComparedByTheHostsTime) {
  Scene before, after;
  before.Span("aten::linear", 0, 10).Span("aten::relu", 20, 30);
  after.Span("aten::linear", 0, 30);
  EXPECT_THAT(
      Rows(DiffOf(SumOf(before), SumOf(after)), {"what", "name", "change", "before_ns", "after_ns"}),
      ElementsAre("operator, aten::linear, slower, 10000, 30000", "operator, aten::relu, removed, 10000, 0"));
}

TEST(TraceDiffTest, ClassesSumTheirKernels) {
  Scene before, after;
  before.Op("gemm_a", 0, 10, 30).Op("gemm_b", 1, 30, 40);
  after.Op("gemm_c", 0, 10, 20);
  EXPECT_THAT(
      Rows(DiffOfClasses(SumOf(before), SumOf(after)), {"class", "count_before", "count_after", "change_ns"}),
      Contains("matmul, 2, 1, -20000"));
}

}  // namespace
}  // namespace fullbore::analyze
