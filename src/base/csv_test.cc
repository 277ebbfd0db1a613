#include "base/csv.h"

#include <gtest/gtest.h>

namespace fullbore {
namespace {

TEST(CsvTest, CellsAreDataWhateverTheyHold) {
  EXPECT_EQ(CsvCell("anna"), "anna");
  EXPECT_EQ(CsvCell("a, \"b\""), "\"a, \"\"b\"\"\"");
  EXPECT_EQ(CsvCell("=1+2"), "'=1+2");
  EXPECT_EQ(CsvCell("@x,y"), "\"'@x,y\"");
  EXPECT_EQ(CsvCell("a\nb").find('\n'), std::string::npos);
}

}  // namespace
}  // namespace fullbore
