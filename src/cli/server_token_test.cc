#include "cli/server_token.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/testing/scratch_directory.h"

namespace fullbore::cli {
namespace {

using testing::HasSubstr;

TEST(ServerTokenTest, OnLoopbackNoneIsNeeded) {
  const auto token = TokenFor("127.0.0.1:7788", "", "listen elsewhere");
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(*token, std::nullopt);
}

TEST(ServerTokenTest, WhereOthersReachItTheErrorSaysBothWaysOut) {
  const auto token = TokenFor("0.0.0.0:7788", "", "listen on 127.0.0.1");
  ASSERT_FALSE(token.ok());
  EXPECT_THAT(token.error().text, HasSubstr("'0.0.0.0:7788' can be reached from other machines"));
  EXPECT_THAT(token.error().hint, AllOf(HasSubstr("--token-file"), HasSubstr("listen on 127.0.0.1")));
}

TEST(ServerTokenTest, AFileIsReadWhereverItListens) {
  const ScratchDirectory directory;
  const std::string file = directory.Write("token", "a-secret-of-some-length\n");
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  for (const char* listen : {"127.0.0.1:7788", "0.0.0.0:7788"})
    EXPECT_EQ(TokenFor(listen, file, "").value(), "a-secret-of-some-length") << listen;
  EXPECT_FALSE(TokenFor("127.0.0.1:7788", directory / "none", "").ok()) << "what is named has to be there";
}

}  // namespace
}  // namespace fullbore::cli
