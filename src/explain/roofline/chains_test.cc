#include "explain/roofline/chains.h"

#include <gmock/gmock.h>

#include "explain/roofline/testing/made_operators.h"

namespace fullbore::roofline {
namespace {

using record::RooflineReason;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Calls on one stream, one after the other.
struct Stream {
  std::vector<ChainRow> rows;
  std::vector<ChainLink> links;
  std::vector<std::string> shapes;  // by row
  int64_t now = 0;

  Stream& Call(std::string_view name, std::vector<OperatorInput> inputs, int64_t us = 10,
               int64_t gap_us = 0) {
    const OperatorShape shape = Called(name, std::move(inputs));
    const Work work = WorkOf(shape, name, {});
    const std::string text = ShapeText(shape);
    size_t row = 0;
    while (row < rows.size() && (rows[row].name != name || shapes[row] != text)) ++row;
    if (row == rows.size()) {
      rows.push_back({name, shape.kind, work, ""});
      shapes.push_back(text);
    }
    now += gap_us * 1000;
    links.push_back({static_cast<uint32_t>(row), now, now + us * 1000, us * 1000});
    now += us * 1000;
    return *this;
  }
  Stream& Unknown() {
    links.push_back({});
    return *this;
  }
  Chains Find(std::optional<double> bytes_per_s = std::nullopt) const {
    return FindChains(rows, {links}, bytes_per_s);
  }
};

const auto kBig = Tensor({1000, 64});

std::vector<std::string> Names(const Chains& chains) {
  std::vector<std::string> names;
  for (const auto& chain : chains.found) {
    std::string text(record::Name(chain.reason));
    for (const auto& name : chain.operators) text += " " + name.substr(name.find("::") + 2);
    names.push_back(text);
  }
  return names;
}

TEST(ChainsTest, StepsOfArithmeticInAChainAreCounted) {
  Stream stream;
  stream.Call("aten::pow", {kBig}).Call("aten::mul", {kBig, kBig}).Call("aten::tanh", {kBig});
  const Chains chains = stream.Find();
  ASSERT_EQ(chains.found.size(), 1U);
  EXPECT_EQ(chains.found.front().elementary, 3);
}

TEST(ChainsTest, LibraryKernelsCopiesAndWhatWorksInPlaceAreNoStepsOfArithmetic) {
  Stream stream;
  stream.Call("aten::gelu", {kBig}).Call("aten::copy_", {kBig, kBig}).Call("aten::mul_", {kBig, kBig});
  const Chains chains = stream.Find();
  ASSERT_EQ(chains.found.size(), 1U);
  EXPECT_EQ(chains.found.front().operators.size(), 3U);
  EXPECT_EQ(chains.found.front().elementary, 0);
}

TEST(ChainsTest, OperatorsInARowOverTheSameElementsAreAChain) {
  Stream stream;
  stream.Call("aten::add", {kBig, kBig}).Call("aten::mul", {kBig, kBig}).Call("aten::tanh", {kBig});
  const Chains chains = stream.Find(1e9);
  EXPECT_THAT(Names(chains), ElementsAre("elementwise-chain add mul tanh"));
  EXPECT_EQ(chains.found[0].count, 1);
  EXPECT_EQ(chains.found[0].device_ns, 30'000);
  // 3 + 3 + 2 tensors of 256,000 bytes, less two that are written and read on the way.
  EXPECT_EQ(chains.found[0].fused_ns, 4 * 256'000.0);
  EXPECT_EQ(chains.rows[0].chain_ns, 10'000);
  EXPECT_EQ(chains.rows[0].chain_length, 3);
}

TEST(ChainsTest, EqualChainsAreCounted) {
  Stream stream;
  for (int i = 0; i < 5; ++i) {
    stream.Call("aten::add", {kBig, kBig}).Call("aten::mul", {kBig, kBig}).Call("aten::tanh", {kBig});
    stream.Call("aten::mm", {Tensor({1000, 64}), Tensor({64, 64})});
  }
  const Chains chains = stream.Find();
  ASSERT_EQ(chains.found.size(), 1U);
  EXPECT_EQ(chains.found[0].count, 5);
  EXPECT_EQ(chains.found[0].fused_ns, std::nullopt) << "without a device";
}

TEST(ChainsTest, AProductOrAnythingUnknownEndsAChain) {
  Stream stream;
  stream.Call("aten::add", {kBig, kBig}).Call("aten::mul", {kBig, kBig}).Unknown().Call("aten::tanh", {kBig});
  stream.Call("aten::mm", {Tensor({1000, 64}), Tensor({64, 64})}).Call("aten::add", {kBig, kBig});
  EXPECT_THAT(Names(stream.Find()), IsEmpty());
}

TEST(ChainsTest, TensorsOfOtherSizesAreNoChain) {
  Stream stream;
  stream.Call("aten::add", {kBig, kBig})
      .Call("aten::mul", {Tensor({999, 64})})
      .Call("aten::tanh", {Tensor({998, 64})});
  EXPECT_THAT(Names(stream.Find()), IsEmpty());
}

TEST(ChainsTest, OneOperatorAgainAndAgainIsABenchmark) {
  Stream stream;
  for (int i = 0; i < 10; ++i) stream.Call("aten::add", {kBig, kBig});
  EXPECT_THAT(Names(stream.Find()), IsEmpty());
}

Stream RmsNorm() {
  Stream stream;
  const auto rows = Tensor({1000, 1});
  stream.Call("aten::pow", {kBig, Value("2")}).Call("aten::mean", {kBig, Value("[-1]")});
  stream.Call("aten::add", {rows}).Call("aten::rsqrt", {rows}).Call("aten::mul", {kBig, rows});
  return stream;
}

TEST(ChainsTest, ARootOfMeansBetweenThemIsANormalisation) {
  Stream stream = RmsNorm();
  stream.Call("aten::mul", {Tensor({64}), kBig});
  const Chains chains = stream.Find();
  EXPECT_THAT(Names(chains), ElementsAre("normalisation-unfused pow mean add rsqrt mul mul"));
  EXPECT_EQ(chains.rows[0].normalisation_ns, 10'000);
  EXPECT_EQ(chains.rows[0].chain_ns, 0);
}

TEST(ChainsTest, AMeanWithoutARootIsNoNormalisation) {
  Stream stream;
  const auto rows = Tensor({1000, 1});
  stream.Call("aten::pow", {kBig, Value("2")}).Call("aten::mean", {kBig, Value("[-1]")});
  stream.Call("aten::mul", {kBig, rows}).Call("aten::tanh", {kBig});
  EXPECT_THAT(Names(stream.Find()), ElementsAre("elementwise-chain pow mean mul tanh"));
}

TEST(ChainsTest, ProductsAroundASoftmaxOfTheirResultsAreAttention) {
  Stream stream;
  const auto scores = Tensor({8, 100, 100});
  stream.Call("aten::bmm", {Tensor({8, 100, 64}), Tensor({8, 64, 100})}).Call("aten::div", {scores});
  stream.Call("aten::_softmax", {scores, Value("-1")}).Call("aten::bmm", {scores, Tensor({8, 100, 64})});
  const Chains chains = stream.Find();
  for (const Surroundings& around : chains.rows) EXPECT_EQ(around.attention_ns, 10'000);
}

TEST(ChainsTest, ASoftmaxOverClassesIsNoAttention) {
  Stream stream;
  const auto logits = Tensor({100, 1000});
  stream.Call("aten::mm", {Tensor({100, 64}), Tensor({64, 1000})})
      .Call("aten::_softmax", {logits, Value("-1")});
  stream.Call("aten::mm", {logits, Tensor({1000, 64})});
  for (const Surroundings& around : stream.Find().rows) EXPECT_EQ(around.attention_ns, 0);
}

TEST(ChainsTest, AFewShortKernelsThatWaitMoreThanTheyRunBesideALongOne) {
  Stream stream;
  stream.Call("aten::mm", {Tensor({1000, 64}), Tensor({64, 64})}, 900);
  for (int i = 0; i < 3; ++i) stream.Call("aten::mul_", {Tensor({256, 64}), Tensor({256, 64})}, 30, 300);
  const Chains chains = stream.Find();
  EXPECT_THAT(Names(chains), ElementsAre("small-kernels mul_ mul_ mul_"));
  EXPECT_EQ(chains.rows[0].small_ns, 900'000);
  EXPECT_EQ(chains.rows[1].small_ns, 90'000);
}

TEST(ChainsTest, ShortKernelsThatFollowOnOneAnotherAreNoSmallKernels) {
  Stream stream;
  stream.Call("aten::mm", {Tensor({1000, 64}), Tensor({64, 64})}, 900);
  for (int i = 0; i < 3; ++i) stream.Call("aten::mul_", {Tensor({256, 64}), Tensor({256, 64})}, 30, 3);
  EXPECT_THAT(Names(stream.Find()), IsEmpty());
}

TEST(ChainsTest, AnOptimizerOfManyShortKernelsIsNotAroundTheLastProduct) {
  Stream stream;
  stream.Call("aten::mm", {Tensor({1000, 64}), Tensor({64, 64})}, 900);
  for (int i = 0; i < 40; ++i) stream.Call("aten::mul_", {Tensor({256 + i, 64})}, 5, 20);
  EXPECT_THAT(Names(stream.Find()), IsEmpty());
}

}  // namespace
}  // namespace fullbore::roofline
