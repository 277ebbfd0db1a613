#include "loader/core/source/remote/url.h"

#include <gmock/gmock.h>

namespace fullbore::loader::remote {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(UrlTest, KnowsItsSchemes) {
  EXPECT_EQ(SchemeOf("http://host/x"), Scheme::kHttp);
  EXPECT_EQ(SchemeOf("HTTPS://host/x"), Scheme::kHttp);
  EXPECT_EQ(SchemeOf("s3://bucket/x"), Scheme::kS3);
  EXPECT_EQ(SchemeOf("/data/s3://x"), Scheme::kNone);
  EXPECT_EQ(SchemeOf("file:///x"), Scheme::kNone);
  EXPECT_EQ(SchemeOf(""), Scheme::kNone);
}

TEST(UrlTest, TakesAnS3KeyAsItIs) {
  const auto location = ParseS3Url("s3://my-bucket.eu/a b/%20?#+.tar");
  ASSERT_TRUE(location);
  EXPECT_EQ(location->bucket, "my-bucket.eu");
  EXPECT_EQ(location->key, "a b/%20?#+.tar");
  EXPECT_EQ(ParseS3Url("s3://bucket")->key, "");
  EXPECT_EQ(ParseS3Url("s3://bucket/")->key, "");
}

TEST(UrlTest, RefusesABucketThatWouldNameAnotherHost) {
  for (const char* url : {"s3://", "s3:///key", "s3://evil.com:80@x/key", "s3://a b/key", "http://x/y"}) {
    const auto location = ParseS3Url(url);
    ASSERT_FALSE(location) << url;
    EXPECT_EQ(location.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(location.error().text, Not(HasSubstr("evil.com:80")));
  }
}

TEST(UrlTest, EncodesKeysAsTheSignatureWants) {
  EXPECT_EQ(PercentEncode("a b+c/\xC3\xBC&'~-_.%", true), "a%20b%2Bc/%C3%BC%26%27~-_.%25");
  EXPECT_EQ(PercentEncode("a/b", false), "a%2Fb");
}

TEST(UrlTest, LeavesWhatATypedUrlHasEncodedAlready) {
  EXPECT_EQ(EncodeTypedUrl("http://h/a b%20c/\xC3\xBC?x=1&y=2"), "http://h/a%20b%20c/%C3%BC?x=1&y=2");
}

}  // namespace
}  // namespace fullbore::loader::remote
