#include "cli/what_if.h"

#include <gmock/gmock.h>

namespace fullbore::cli {
namespace {

using testing::HasSubstr;

TEST(WhatIfTest, FindsChangesByTheirNamesAndNumbers) {
  const auto changes = ChangesNamed({"no-sync", "workers=4"});
  ASSERT_TRUE(changes.ok()) << changes.error().text;
  ASSERT_EQ(changes->size(), 2u);
  EXPECT_EQ((*changes)[0]->id(), "no-sync");
  EXPECT_EQ((*changes)[1]->id(), "workers=4");
}

std::string HintFor(const std::string& name) {
  const auto changes = ChangesNamed({name});
  return changes ? "" : changes.error().hint;
}

TEST(WhatIfTest, NamesTheChangesThereAreWhereOneIsNotKnown) {
  EXPECT_THAT(HintFor("magic"), HasSubstr("no-sync"));
}

TEST(WhatIfTest, AsksForTheChangeThatIsMisspeltOrHasAnotherToolsName) {
  const auto changes = ChangesNamed({"no-sink"});
  ASSERT_FALSE(changes.ok());
  EXPECT_EQ(changes.error().text, "--what-if: no change is called 'no-sink'");
  EXPECT_EQ(changes.error().hint, "did you mean no-sync?");
}

TEST(WhatIfTest, NamesTheDevicesThereAreWhereOneIsNotKnown) {
  const auto changes = ChangesNamed({"device=Z80"});
  ASSERT_FALSE(changes.ok());
  EXPECT_EQ(changes.error().text, "--what-if: no device is called 'Z80'");
  EXPECT_THAT(changes.error().hint, HasSubstr("H100"));
}

TEST(WhatIfTest, AsksForTheChangeThatTakesTheNumber) {
  EXPECT_EQ(HintFor("num_workers=4"), "did you mean workers=4?");
  EXPECT_EQ(HintFor("bf16"), "did you mean precision?");
  EXPECT_EQ(HintFor("gpu=H100"), "did you mean device=H100?");
  EXPECT_EQ(HintFor("H100"), "did you mean device=H100?");
}

TEST(WhatIfTest, KnowsADeviceInOtherSpellings) {
  EXPECT_EQ(HintFor("device=H100-SXM5"), "did you mean 'device=H100 SXM'?");
  EXPECT_EQ(HintFor("device=rtx4090"), "did you mean 'device=GeForce RTX 4090'?");
  EXPECT_EQ(HintFor("device=MI-300X"), "did you mean 'device=MI300X'?");
  EXPECT_EQ(HintFor("device=a100_sxm_80gb"), "did you mean 'device=A100 SXM 80 GB'?");
}

TEST(WhatIfTest, ListsEachChangeWithWhatItDoes) {
  const std::string list = ListOfChanges();
  for (const replay::Change* change : replay::AllChanges()) {
    EXPECT_THAT(list, HasSubstr(std::string(change->id())));
    EXPECT_THAT(list, HasSubstr(std::string(change->does())));
  }
}

}  // namespace
}  // namespace fullbore::cli
