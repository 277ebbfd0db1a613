#include "tune/patch.h"

#include <gtest/gtest.h>

namespace fullbore::tune {
namespace {

TEST(PatchTest, ChangesTheArgumentsThatStandInTheCall) {
  EXPECT_EQ(
      PatchOf("a\nb\nc\nd\nx = DataLoader(\n    data, num_workers=0,\n    batch_size=n,\n)\ne\n", "train.py",
              5, {{"num_workers", 4}, {"batch_size", 64}}),
      "--- a/train.py\n+++ b/train.py\n@@ -3,7 +3,7 @@\n c\n d\n x = DataLoader(\n-    data, num_workers=0,\n"
      "+    data, num_workers=4,\n     batch_size=n,\n )\n e\n");
}

TEST(PatchTest, LeavesOtherNamesAndOtherCallsAlone) {
  EXPECT_EQ(PatchOf("f(num_workers=0)\ng(my_num_workers=0)\n", "t.py", 2, {{"num_workers", 4}}), "");
  EXPECT_EQ(PatchOf("f(num_workers=args.workers)\n", "t.py", 1, {{"num_workers", 4}}), "");
  EXPECT_EQ(PatchOf("f(num_workers=0 + extra)\n", "t.py", 1, {{"num_workers", 4}}), "");
  EXPECT_EQ(PatchOf("f(num_workers=0)\n", "t.py", 7, {{"num_workers", 4}}), "");
}

TEST(PatchTest, WritesPythonsWordsAndKeepsAMissingEndOfLine) {
  EXPECT_EQ(PatchOf("f(pin_memory=False)", "t.py", 1, {{"pin_memory", true}}),
            "--- a/t.py\n+++ b/t.py\n@@ -1,1 +1,1 @@\n-f(pin_memory=False)\n\\ No newline at end of file\n"
            "+f(pin_memory=True)\n\\ No newline at end of file\n");
}

}  // namespace
}  // namespace fullbore::tune
