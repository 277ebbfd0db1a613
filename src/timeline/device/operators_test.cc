#include "timeline/device/operators.h"

#include <gtest/gtest.h>

namespace fullbore::timeline {
namespace {

TEST(ElementTypeTest, NamesOfC10AndOfScalarTypeMeanTheSame) {
  EXPECT_EQ(TypeNamed("c10::BFloat16"), ElementType::kBFloat16);
  EXPECT_EQ(TypeNamed("BFloat16"), ElementType::kBFloat16);
  EXPECT_EQ(TypeNamed("long int"), TypeNamed("Long"));
  EXPECT_EQ(TypeNamed("c10::Float8_e4m3fnuz"), ElementType::kFloat8);
  EXPECT_EQ(TypeNamed("TensorList"), ElementType::kUnknown);
  EXPECT_EQ(ElementBytes(ElementType::kBFloat16), 2);
  EXPECT_EQ(ElementBytes(ElementType::kUnknown), 0);
  EXPECT_EQ(Name(ElementType::kFloat8), "float8");
  EXPECT_EQ(Name(ElementType::kBool), "bool");
}

OperatorShape WithDims(size_t numbers) {
  OperatorShape shape;
  shape.inputs.resize(1);
  shape.inputs[0].dims.assign(numbers, 1);
  return shape;
}

TEST(OperatorLogTest, AShapeIsFoundUnderItsKeyAndUnknownUnderAnother) {
  OperatorLog log;
  const uint16_t number = log.Add(17, WithDims(2));
  EXPECT_NE(number, 0);
  EXPECT_EQ(log.Find(17), number);
  EXPECT_EQ(log.Find(18), std::nullopt);
}

TEST(OperatorLogTest, EverNewShapesEndAtTheLimit) {
  OperatorLog log;
  for (uint64_t key = 0; key < 2 * OperatorLog::kMaxShapes; ++key) log.Add(key, WithDims(1));
  EXPECT_EQ(log.shapes.size(), OperatorLog::kMaxShapes);
  EXPECT_EQ(log.Add(1'000'000, WithDims(1)), 0);
  EXPECT_EQ(log.Find(1'000'000), std::nullopt);
}

TEST(OperatorLogTest, LargeShapesEndEarlier) {
  OperatorLog log;
  constexpr size_t kNumbers = OperatorLog::kMaxNumbers / 4;
  EXPECT_NE(log.Add(1, WithDims(kNumbers)), 0);
  EXPECT_NE(log.Add(2, WithDims(kNumbers)), 0);
  EXPECT_NE(log.Add(3, WithDims(kNumbers)), 0);
  EXPECT_EQ(log.Add(4, WithDims(kNumbers)), 0);
  EXPECT_NE(log.Add(5, WithDims(10)), 0) << "a small one still fits";
}

TEST(OperatorLogTest, CallsOfAKindCanBeLeftOut) {
  OperatorLog log;
  OperatorShape table = WithDims(1);
  table.kind = OperatorKind::kTable;
  const uint16_t lookup = log.Add(1, table), other = log.Add(2, WithDims(1));
  log.calls.push_back({10, 5, lookup, 0});
  log.calls.push_back({20, 5, other, 0});
  log.Drop(OperatorKind::kTable);
  ASSERT_EQ(log.calls.size(), 1U);
  EXPECT_EQ(log.calls[0].shape, other);
}

TEST(OperatorLogTest, OuterCallsComeBeforeTheOnesInside) {
  OperatorLog log;
  log.calls.push_back({20, 5, 1, 0});
  log.calls.push_back({10, 5, 2, 0});
  log.calls.push_back({10, 50, 3, 0});
  log.Sort();
  EXPECT_EQ(log.calls[0].shape, 3);
  EXPECT_EQ(log.calls[1].shape, 2);
  EXPECT_EQ(log.calls[2].shape, 1);
  EXPECT_EQ(log.calls[0].end_ns(), 60);
}

}  // namespace
}  // namespace fullbore::timeline
