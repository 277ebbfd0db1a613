#include "explain/ingest/kineto/operator_args.h"

#include <gmock/gmock.h>

#include "explain/ingest/kineto/json_window.h"

namespace fullbore::ingest::kineto {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using timeline::ElementType;
using timeline::OperatorKind;
using timeline::OperatorShape;

// Texts lie in a window: zeros follow.
std::string Padded(const std::string& text) { return text + std::string(kPadding, '\0'); }

OperatorShape Parse(const std::string& dims, const std::string& types = "[]", const std::string& strides = "",
                    const std::string& concretes = "", OperatorKind kind = OperatorKind::kConvolution) {
  const std::string texts[] = {Padded(dims), Padded(types), Padded(strides), Padded(concretes)};
  OperatorArgs args;
  args.dims = std::string_view(texts[0]).substr(0, dims.size());
  args.types = std::string_view(texts[1]).substr(0, types.size());
  args.strides = std::string_view(texts[2]).substr(0, strides.size());
  args.concretes = std::string_view(texts[3]).substr(0, concretes.size());
  return ParseOperator(args, 1, kind);
}

TEST(OperatorArgsTest, TensorsHaveTheirDimensionsTypesAndStrides) {
  const OperatorShape shape = Parse("[[1024], [8944, 1024], []]", R"(["float", "c10::BFloat16", "Scalar"])",
                                    "[[1], [1024, 1], []]", R"(["", "", "1"])");
  ASSERT_EQ(shape.inputs.size(), 3U);
  EXPECT_THAT(shape.inputs[0].dims, ElementsAre(1024));
  EXPECT_EQ(shape.inputs[0].type, ElementType::kFloat32);
  EXPECT_THAT(shape.inputs[1].dims, ElementsAre(8944, 1024));
  EXPECT_THAT(shape.inputs[1].strides, ElementsAre(1024, 1));
  EXPECT_EQ(shape.inputs[1].type, ElementType::kBFloat16);
  EXPECT_FALSE(shape.inputs[2].tensor());
  EXPECT_EQ(shape.inputs[2].concrete, "1");
}

TEST(OperatorArgsTest, AListOfTensorsIsTheSumOfItsElements) {
  const OperatorShape shape = Parse("[[[4, 1, 768], [4, 196, 768]], []]", R"(["TensorList", "Scalar"])",
                                    "[[[0, 768, 1], [150528, 1, 196]], []]");
  ASSERT_EQ(shape.inputs.size(), 2U);
  EXPECT_FALSE(shape.inputs[0].tensor());
  EXPECT_EQ(shape.inputs[0].list_tensors, 2);
  EXPECT_EQ(shape.inputs[0].list_elements, 4 * 197 * 768);
  EXPECT_THAT(shape.inputs[0].strides, IsEmpty());
}

TEST(OperatorArgsTest, ListsOfDifferentLengthsAreTakenAsFarAsTheyGo) {
  const OperatorShape shape = Parse("[[8, 4], [4]]", R"(["float"])", "[[4, 1]]", R"(["", "", "", "[2, 2]"])");
  ASSERT_EQ(shape.inputs.size(), 4U);
  EXPECT_EQ(shape.inputs[1].type, ElementType::kUnknown);
  EXPECT_THAT(shape.inputs[1].strides, IsEmpty());
  EXPECT_EQ(shape.inputs[3].concrete, "[2, 2]");
}

TEST(OperatorArgsTest, ArgumentsThatDoNotDecideAboutTheWorkAreNotKept) {
  const OperatorShape shape =
      Parse("[[8], []]", R"(["float", "Scalar"])", "", R"(["", "0.0017"])", OperatorKind::kElementwise);
  EXPECT_EQ(shape.inputs[1].concrete, "");
}

TEST(OperatorArgsTest, WhatNoMachineHoldsIsNoTensor) {
  EXPECT_FALSE(Parse("[[1125899906842625]]").inputs[0].tensor()) << "2^50 + 1 elements";
  EXPECT_FALSE(Parse("[[33554432, 33554433]]").inputs[0].tensor()) << "a product beyond 2^50";
  EXPECT_FALSE(Parse("[[4294967296, 4294967296, 4294967296]]").inputs[0].tensor())
      << "a product beyond 64 bits";
  EXPECT_FALSE(Parse("[[4294967296, 4294967296, 0]]").inputs[0].tensor()) << "although nothing is in it";
  EXPECT_FALSE(Parse("[[-1, 4]]").inputs[0].tensor());
  EXPECT_FALSE(Parse("[[99999999999999999999]]").inputs[0].tensor());
  EXPECT_FALSE(Parse("[[\"4\\\"\", 4]]").inputs[0].tensor());
  EXPECT_FALSE(Parse("[[1,1,1,1,1,1,1,1,1,1,1,1,1]]").inputs[0].tensor()) << "thirteen dimensions";
  EXPECT_TRUE(Parse("[[0, 768]]").inputs[0].tensor()) << "an empty one is one";
}

TEST(OperatorArgsTest, ListsBeyondTheBoundAreNothing) {
  const OperatorShape shape = Parse("[[[1125899906842624], [1]]]");
  EXPECT_EQ(shape.inputs[0].list_tensors, 0);
  EXPECT_EQ(shape.inputs[0].list_elements, 0);
}

TEST(OperatorArgsTest, InputsAreBounded) {
  std::string dims = "[[1]";
  for (int i = 0; i < 1000; ++i) dims += ", [1]";
  EXPECT_EQ(Parse(dims + "]", "[]", "", dims + "]").inputs.size(), kMaxInputs);
}

TEST(OperatorArgsTest, LongArgumentsAreLeftOut) {
  EXPECT_EQ(
      Parse("[[1]]", "[]", "", "[\"" + std::string(kMaxConcreteBytes + 1, '1') + "\"]").inputs[0].concrete,
      "");
}

TEST(OperatorArgsTest, WhatIsNoListHasNoInputs) {
  for (const char* text : {"", "7", "{}", "\"[[1]]\"", "[", "[["})
    EXPECT_THAT(Parse(text).inputs, IsEmpty()) << text;
}

struct Kept {
  timeline::OperatorLog log;
  OperatorReader reader{&log};
  void Call(int64_t begin_ns, int64_t end_ns, const std::string& args,
            OperatorKind kind = OperatorKind::kElementwise) {
    const std::string text = Padded(args);
    reader.Take({1, kind, begin_ns, end_ns, 0}, std::string_view(text).substr(0, args.size()));
  }
};

TEST(OperatorReaderTest, EqualCallsShareAShape) {
  Kept kept;
  kept.Call(0, 10, R"({"External id": 1, "Input Dims": [[8], []], "Concrete Inputs": ["", "0.1"]})");
  kept.Call(20, 30, R"({"External id": 2, "Input Dims": [[8], []], "Concrete Inputs": ["", "0.2"]})");
  kept.Call(40, 50, R"({"External id": 3, "Input Dims": [[9], []], "Concrete Inputs": ["", "0.2"]})");
  ASSERT_EQ(kept.log.calls.size(), 3U);
  EXPECT_EQ(kept.log.calls[0].shape, kept.log.calls[1].shape);
  EXPECT_NE(kept.log.calls[0].shape, kept.log.calls[2].shape);
  EXPECT_EQ(kept.log.shapes.size(), 3U) << "the first stands for the unknown";
}

TEST(OperatorReaderTest, StridesOfAConvolutionMakeAnotherShape) {
  Kept kept;
  kept.Call(0, 10, R"({"Input Dims": [[8]], "Concrete Inputs": ["[1, 1]"]})", OperatorKind::kConvolution);
  kept.Call(0, 10, R"({"Input Dims": [[8]], "Concrete Inputs": ["[2, 2]"]})", OperatorKind::kConvolution);
  EXPECT_NE(kept.log.calls[0].shape, kept.log.calls[1].shape);
}

TEST(OperatorReaderTest, CallsWithoutShapesAreNotKept) {
  Kept kept;
  kept.Call(0, 10, R"({"External id": 1})");
  EXPECT_EQ(kept.log.calls.size(), 0U);
}

TEST(OperatorReaderTest, CallsBeyondTheLimitAreCounted) {
  Kept kept;
  for (size_t i = 0; i < timeline::OperatorLog::kMaxShapes + 9; ++i)
    kept.Call(0, 10, R"({"Input Dims": [[)" + std::to_string(i) + "]]}");
  EXPECT_EQ(kept.log.left_out, 10);
  EXPECT_EQ(kept.log.calls.size(), timeline::OperatorLog::kMaxShapes - 1);
}

TEST(OperatorReaderTest, CallsOfManySecondsAreCutNotWrappedAround) {
  Kept kept;
  kept.Call(0, 3'600'000'000'000, R"({"Input Dims": [[1]]})");
  EXPECT_EQ(kept.log.calls[0].duration_ns, timeline::OperatorCall::kMaxNs);
}

}  // namespace
}  // namespace fullbore::ingest::kineto
