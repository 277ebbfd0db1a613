#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using ::testing::HasSubstr;
using testing::kMs;
using testing::MadeLoader;
using ::testing::Not;

record::CopyStats Copies(const char* kind, int64_t exposed_ms) {
  record::CopyStats copies;
  copies.kind = kind;
  copies.exposed_ns = exposed_ms * kMs;
  return copies;
}

TEST(CopyBoundTest, IsRaisedByCopiesThatNothingHides) {
  EXPECT_THAT(Diagnose(ATrace().InEachStep(Share::kCopyExposed, 20)), Finds("copy-bound"));
}

TEST(CopyBoundTest, IsRaisedByATrainingThreadThatCopies) {
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kH2d, 20)), Finds("copy-bound"));
}

TEST(CopyBoundTest, IsNotRaisedByCopiesBelowATwentiethOfTheStep) {
  EXPECT_THAT(Diagnose(ATrace().InEachStep(Share::kCopyExposed, 5)), Not(Finds("copy-bound")));
}

TEST(CopyBoundTest, ALoaderWithoutPinnedMemoryIsToldToPinIt) {
  const Diagnosis diagnosis =
      Diagnose(ATraining().InEachStep(Share::kH2d, 20).FedBy(MadeLoader(2, 100, 10, 9)));
  EXPECT_EQ(FindingIn(diagnosis, "copy-bound")->change, "DataLoader(pin_memory=True)");
}

TEST(CopyBoundTest, AFewPageableCopiesBesideManyPinnedOnesAreNotBlamed) {
  ARun run = ATrace().InEachStep(Share::kCopyExposed, 20);
  run.rank().tables.emplace().copies = {Copies("copy_h2d_pageable", 1), Copies("copy_h2d_pinned", 1900)};
  const Diagnosis pinned = Diagnose(run);
  EXPECT_EQ(FindingIn(pinned, "copy-bound")->change, "");
  EXPECT_THAT(FindingIn(pinned, "copy-bound")->title, Not(HasSubstr("pageable")));

  run.rank().tables->copies = {Copies("copy_h2d_pageable", 1900), Copies("copy_h2d_pinned", 1)};
  EXPECT_THAT(FindingIn(Diagnose(run), "copy-bound")->title, HasSubstr("pageable"));
}

}  // namespace
}  // namespace fullbore::diagnose
