#include "loader/core/source/remote/s3_access.h"

#include <gtest/gtest.h>

namespace fullbore::loader::remote {
namespace {

using Texts = std::map<std::string, std::string>;

S3Surroundings Around(Texts variables, Texts files = {}) {
  return {.variable = [variables](const std::string& name) -> std::optional<std::string> {
            const auto found = variables.find(name);
            if (found == variables.end()) return std::nullopt;
            return found->second;
          },
          .file = [files](const std::string& path) -> Result<std::string> {
            const auto found = files.find(path);
            if (found == files.end()) return Error{ErrorCode::kNotFound, path, ""};
            return found->second;
          }};
}

const Texts kFiles = {
    {"/home/me/.aws/credentials",
     "# mine\n[default]\naws_access_key_id = DEFAULT\naws_secret_access_key=one/two+three=\n\n"
     "[ other ]\r\naws_access_key_id = OTHER\r\naws_secret_access_key = four\r\naws_session_token = "
     "five\r\n"},
    {"/home/me/.aws/config",
     "[default]\nregion = eu-central-1\ns3 =\n  region = no-value-of-ours\n[profile other]\nregion = "
     "us-west-2\n"}};

TEST(S3AccessTest, TakesKeysFromTheEnvironmentFirst) {
  const auto access = FindS3Access("", Around({{"HOME", "/home/me"},
                                               {"AWS_ACCESS_KEY_ID", "KEY"},
                                               {"AWS_SECRET_ACCESS_KEY", "SECRET"},
                                               {"AWS_SESSION_TOKEN", "TOKEN"},
                                               {"AWS_DEFAULT_REGION", "ap-south-1"}},
                                              kFiles));
  ASSERT_TRUE(access);
  EXPECT_EQ(access->credentials, (Credentials{"KEY", "SECRET", "TOKEN"}));
  EXPECT_EQ(access->region, "ap-south-1");
}

TEST(S3AccessTest, TakesTheDefaultProfileFromItsFiles) {
  const auto access = FindS3Access("", Around({{"HOME", "/home/me"}}, kFiles));
  ASSERT_TRUE(access);
  EXPECT_EQ(access->credentials, (Credentials{"DEFAULT", "one/two+three=", ""}));
  EXPECT_EQ(access->region, "eu-central-1");
}

TEST(S3AccessTest, TakesTheProfileThatIsNamed) {
  const auto access = FindS3Access("", Around({{"HOME", "/home/me"}, {"AWS_PROFILE", "other"}}, kFiles));
  ASSERT_TRUE(access);
  EXPECT_EQ(access->credentials, (Credentials{"OTHER", "four", "five"}));
  EXPECT_EQ(access->region, "us-west-2");
}

TEST(S3AccessTest, AsksAnonymouslyWithoutKeys) {
  const auto access = FindS3Access("", Around({}));
  ASSERT_TRUE(access);
  EXPECT_FALSE(access->credentials);
  EXPECT_EQ(access->region, "us-east-1");
}

TEST(S3AccessTest, HalfAKeyAndAMissingProfileAreErrors) {
  for (const Texts& variables :
       {Texts{{"AWS_ACCESS_KEY_ID", "KEY"}}, Texts{{"AWS_SECRET_ACCESS_KEY", "SECRET"}},
        Texts{{"HOME", "/home/me"}, {"AWS_PROFILE", "nobody"}}}) {
    const auto access = FindS3Access("", Around(variables, kFiles));
    ASSERT_FALSE(access);
    EXPECT_EQ(access.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(access.error().hint, "");
  }
}

TEST(S3AccessTest, TheOptionGoesBeforeTheEnvironmentsEndpoint) {
  const auto around = Around({{"AWS_ENDPOINT_URL", "https://minio.example:9000/"}});
  EXPECT_EQ(FindS3Access("", around)->endpoint, "https://minio.example:9000");
  EXPECT_EQ(FindS3Access("http://127.0.0.1:1", around)->endpoint, "http://127.0.0.1:1");
  EXPECT_FALSE(FindS3Access("127.0.0.1:1", around));
}

}  // namespace
}  // namespace fullbore::loader::remote
