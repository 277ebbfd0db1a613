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

TEST(WhatIfTest, NamesTheChangesThereAreWhereOneIsNotKnown) {
  const auto changes = ChangesNamed({"no-sink"});
  ASSERT_FALSE(changes.ok());
  EXPECT_EQ(changes.error().text, "--what-if: no change is called 'no-sink'");
  EXPECT_THAT(changes.error().hint, HasSubstr("no-sync"));
}

TEST(WhatIfTest, NamesTheDevicesThereAreWhereOneIsNotKnown) {
  const auto changes = ChangesNamed({"device=Z80"});
  ASSERT_FALSE(changes.ok());
  EXPECT_EQ(changes.error().text, "--what-if: no device is called 'Z80'");
  EXPECT_THAT(changes.error().hint, HasSubstr("H100"));
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
