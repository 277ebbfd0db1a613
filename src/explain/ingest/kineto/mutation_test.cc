// Broken traces by the thousand: whatever the bytes are, the readers end in a trace or an error, and what
// they hand on keeps its promises. Deterministic, seconds long.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <random>

#include "explain/ingest/kineto/kineto_reader.h"
#include "explain/ingest/testing/trace_builder.h"
#include "explain/roofline/roofline.h"
#include "timeline/device/rank.h"

namespace fullbore::ingest::kineto {
namespace {

constexpr int kRounds = 8'000;

std::string Mutated(std::string text, std::mt19937* random) {
  static constexpr char kTokens[] = "\"\\{}[],:0123456789.eE-+ \n\t\0\x01\xff";
  const auto any = [random](size_t below) { return (*random)() % std::max<size_t>(below, 1); };
  for (size_t edits = 1 + any(6); edits > 0 && !text.empty(); --edits) {
    const size_t at = any(text.size());
    const size_t length = std::min(any(64), text.size() - at);
    switch (any(6)) {
      case 0:
        text[at] = kTokens[any(sizeof kTokens)];
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(any(text.size()), length));
        break;
      case 3:
        text[at] = static_cast<char>(any(256));
        break;
      case 4:
        text.insert(at, 1, kTokens[any(sizeof kTokens)]);
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

void ReadAndCheck(const std::string& bytes) {
  auto trace = ReadKineto(BytesInMemory(bytes), "t.json");
  if (!trace) {
    ASSERT_FALSE(trace.error().text.empty());
    return;
  }
  const timeline::RankResult result = timeline::SummariseRank(*trace);
  for (const record::Step& step : result.info.steps) {
    ASSERT_GE(step.wall_ns, 0);
    ASSERT_EQ(std::accumulate(step.share_ns.begin(), step.share_ns.end(), int64_t{0}), step.wall_ns);
  }
  if (result.info.busy_ns) {
    ASSERT_LE(*result.info.busy_ns, *result.info.span_ns);
  }
  const record::Roofline judged = roofline::Judge(*trace, timeline::FindSteps(*trace).steps,
                                                  roofline::DeviceNamed("Tesla V100-SXM2-16GB"));
  for (const record::RooflineOperator& one : judged.operators) {
    ASSERT_GE(one.count, 1);
    for (const auto& figure : {one.flops, one.bytes, one.attainable_ns}) {
      ASSERT_TRUE(!figure || (std::isfinite(*figure) && *figure >= 0)) << one.name << " " << one.shape;
    }
  }
}

TEST(KinetoMutationTest, NoMutationOfATraceBreaksTheReader) {
  const std::string seed = testing::SmallTrainingTrace();
  std::mt19937 random(7);
  for (int i = 0; i < kRounds; ++i) {
    SCOPED_TRACE(i);
    ReadAndCheck(Mutated(seed, &random));
    if (HasFatalFailure()) return;
  }
}

TEST(KinetoMutationTest, NoMutationOfCompressedBytesBreaksTheReader) {
  const std::string seeds[] = {
      testing::Gzip(testing::SmallTrainingTrace()), testing::Zstd(testing::SmallTrainingTrace()),
      testing::Xz(testing::SmallTrainingTrace()), testing::Bzip2(testing::SmallTrainingTrace())};
  std::mt19937 random(8);
  for (int i = 0; i < kRounds; ++i) {
    SCOPED_TRACE(i);
    ReadAndCheck(Mutated(seeds[i % 4], &random));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace fullbore::ingest::kineto
