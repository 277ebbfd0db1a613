#include "base/toml_table.h"

#include <gmock/gmock.h>

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// What reading a file with an optional name, a number up to 9 and a list of parts says is wrong; empty: nothing.
std::string Wrong(const std::string& text) {
  const std::string path = "x.toml";
  const auto parsed = ParseToml(text, path, "");
  if (!parsed) return parsed.error().text;
  std::optional<Error> error;
  TomlTable root(*parsed, "", path, error);
  root.TextOr("name", "");
  root.Number("number", 1, 0, 9, "a digit");
  for (const toml::table* part : TomlTables(root, "part", 2))
    TomlTable(*part, "part", path, error).RefuseOthers();
  root.RefuseOthers();
  return error ? error->text + "; " + error->hint : "";
}

TEST(TomlTableTest, WhatIsRightIsTaken) {
  EXPECT_EQ(Wrong(""), "");
  EXPECT_EQ(Wrong("name = \"a\"\nnumber = 3\n[[part]]\n[[part]]\n"), "");
}

TEST(TomlTableTest, WhatIsWrongIsSaidWithItsLineAndTheNextStep) {
  const std::pair<const char*, const char*> wrong[] = {
      {"name = 3", "x.toml:1: name is not a text"},
      {"\nnumber = 11", "x.toml:2: number = 11 is not a digit, from 0 to 9"},
      {"nmae = \"a\"", "did you mean 'name'?"},
      {"part = 3", "part is not a list; write [[part]] with two brackets"},
      {"part = [3]", "an entry of part is not a table"},
      {"[[part]]\n[[part]]\n[[part]]", "x.toml:3: more than 2 of [[part]]"},
      {"[[part]]\nx = 1", "x.toml:2: part: the key 'x' is unknown here"},
      {"name = ", "x.toml:1: "}};
  for (const auto& [text, said] : wrong) EXPECT_THAT(Wrong(text), HasSubstr(said)) << text;
}

// What is wrong later may follow from what was wrong first.
TEST(TomlTableTest, TheFirstProblemIsKept) {
  EXPECT_THAT(Wrong("number = 11\nname = 3"), HasSubstr("name"));
  EXPECT_THAT(Wrong("number = 11\nnmae = 3"), HasSubstr("number"));
}

}  // namespace
}  // namespace fullbore
