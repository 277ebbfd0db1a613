// What must hold of every report, tried on random recordings: no sentence contradicts the bar below it.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;

// Findings that are about one share of the step.
const std::map<std::string, std::vector<Share>>& SharesOfFindings() {
  static const std::map<std::string, std::vector<Share>> shares = {
      {"input-bound", {Share::kDataWait}},
      {"copy-bound", {Share::kCopyExposed, Share::kH2d}},
      {"sync-bound", {Share::kSync}},
      {"launch-bound", {Share::kLaunch, Share::kGap}},
  };
  return shares;
}

class RandomRecordingTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  RandomRecordingTest() {
    std::mt19937 random(GetParam());
    const auto upto = [&](int most) { return std::uniform_int_distribution<int>(0, most - 1)(random); };
    const bool on_device = upto(2) == 0;
    const int64_t steps = upto(4) == 0 ? 1 : 1 + upto(60);
    ARun run = on_device ? ATrace(steps) : ATraining(steps);
    constexpr Share kOnDevice[] = {Share::kDataWait,    Share::kSync,       Share::kLaunch,
                                   Share::kHostOther,   Share::kGap,        Share::kCompute,
                                   Share::kCommExposed, Share::kCopyExposed};
    constexpr Share kOnHost[] = {Share::kDataWait, Share::kHostOther, Share::kH2d,      Share::kCommExposed,
                                 Share::kForward,  Share::kBackward,  Share::kOptimizer};
    for (int i = 0, changes = upto(4); i < changes; ++i)
      run.InEachStep(on_device ? kOnDevice[upto(8)] : kOnHost[upto(7)], upto(3) == 0 ? upto(100) : upto(12));
    diagnosis_ = Diagnose(run);
  }

  double ShareNamed(Share share) const {
    const auto found = diagnosis_.shares.find(std::string(Name(share)));
    return found == diagnosis_.shares.end() ? 0 : found->second;
  }

  Diagnosis diagnosis_;
};

TEST_P(RandomRecordingTest, TheSharesSumToOne) {
  double sum = 0;
  for (const auto& [name, share] : diagnosis_.shares) sum += share;
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST_P(RandomRecordingTest, HealthyMeansThatEveryShareButComputationIsSmall) {
  if (diagnosis_.findings.empty()) {
    EXPECT_TRUE(diagnosis_.fitness.Forbids(fitness::Conclusion::kHealthy))
        << "nothing is said, without a reason";
    return;
  }
  if (diagnosis_.findings.front().id != "healthy") return;
  for (size_t i = 0; i < record::kShareCount; ++i) {
    const auto share = static_cast<Share>(i);
    if (IsComputation(share)) continue;
    EXPECT_LT(ShareNamed(share), kHealthy) << Name(share);
  }
}

TEST_P(RandomRecordingTest, AFindingCostsWhatTheBarShows) {
  for (const Finding& finding : diagnosis_.findings) {
    const auto found = SharesOfFindings().find(finding.id);
    if (found == SharesOfFindings().end()) continue;
    double nearest = 1;
    for (const Share share : found->second)
      nearest = std::min(nearest, std::abs(finding.share - ShareNamed(share)));
    EXPECT_LT(nearest, 1e-9) << finding.id << " " << finding.title;
  }
}

TEST_P(RandomRecordingTest, NothingIsPromisedBeyondTheRemovalOfAllThatIsNotComputation) {
  double computation = 0;
  for (size_t i = 0; i < record::kShareCount; ++i) {
    if (IsComputation(static_cast<Share>(i))) computation += ShareNamed(static_cast<Share>(i));
  }
  for (const Finding& finding : diagnosis_.findings) {
    EXPECT_LE(finding.speedup.low, finding.speedup.expected) << finding.id;
    EXPECT_LE(finding.speedup.expected, finding.speedup.high) << finding.id;
    if (!SharesOfFindings().contains(finding.id)) continue;
    EXPECT_LE(finding.speedup.expected, 1 / computation + 1e-6) << finding.id;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRecordingTest, ::testing::Range(0U, 100U));

}  // namespace
}  // namespace fullbore::diagnose
