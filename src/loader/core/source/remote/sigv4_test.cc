#include "loader/core/source/remote/sigv4.h"

#include <gmock/gmock.h>

namespace fullbore::loader::remote {
namespace {

using testing::HasSubstr;

// "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk (AWS Signature
// Version 4)" in the Amazon S3 API reference: the keys, the time and the signatures are from there.
const Credentials kExampleKeys = {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
constexpr int64_t kExampleTime = 1369353600;  // 2013-05-24 00:00:00 UTC

SigningInput Example() {
  SigningInput input;
  input.method = "GET";
  input.host = "examplebucket.s3.amazonaws.com";
  input.path = "/";
  input.region = "us-east-1";
  input.time_s = kExampleTime;
  return input;
}

std::string Field(const HeaderFields& fields, const std::string& name) {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return "(none)";
}

TEST(SigV4Test, SignsAwssExampleOfAnObjectWithARange) {
  auto input = Example();
  input.path = "/test.txt";
  input.headers = {{"range", "bytes=0-9"}};
  const auto fields = Sign(input, kExampleKeys);
  EXPECT_EQ(Field(fields, "Authorization"),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(Field(fields, "x-amz-date"), "20130524T000000Z");
}

TEST(SigV4Test, SignsAwssExampleOfAParameterWithoutAValue) {
  auto input = Example();
  input.canonical_query = CanonicalQuery({{"lifecycle", ""}});
  EXPECT_THAT(Field(Sign(input, kExampleKeys), "Authorization"),
              HasSubstr("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(SigV4Test, SignsAwssExampleOfAListing) {
  auto input = Example();
  input.canonical_query = CanonicalQuery({{"prefix", "J"}, {"max-keys", "2"}});
  EXPECT_EQ(input.canonical_query, "max-keys=2&prefix=J");
  EXPECT_THAT(Field(Sign(input, kExampleKeys), "Authorization"),
              HasSubstr("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(SigV4Test, SignsTheSessionTokenWithTheRest) {
  auto keys = kExampleKeys;
  keys.session_token = "a/token+with=signs";
  const auto fields = Sign(Example(), keys);
  EXPECT_EQ(Field(fields, "x-amz-security-token"), "a/token+with=signs");
  EXPECT_THAT(Field(fields, "Authorization"),
              HasSubstr("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token"));
}

TEST(SigV4Test, EncodesWhatAQueryHolds) {
  EXPECT_EQ(CanonicalQuery({{"prefix", "a b+c/\xC3\xBC=&"}, {"list-type", "2"}}),
            "list-type=2&prefix=a%20b%2Bc%2F%C3%BC%3D%26");
}

}  // namespace
}  // namespace fullbore::loader::remote
