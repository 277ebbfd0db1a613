#include "loader/core/source/remote/s3_xml.h"

#include <gtest/gtest.h>

namespace fullbore::loader::remote {
namespace {

const std::string kPage = R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>data</Name><Prefix/><KeyCount>2</KeyCount><IsTruncated>true</IsTruncated>
  <NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>
  <Contents><Key>a b+c/ü&amp;&lt;&#x1;&#38;.bin</Key><LastModified>2026-11-20T21:52:51.000Z</LastModified>
    <ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag><Size>434234</Size><StorageClass>STANDARD</StorageClass>
    <Owner><ID>x</ID><Key>not this one</Key></Owner></Contents>
  <Contents><Key><![CDATA[x<y>]]></Key><ETag>"e"</ETag><Size>0</Size></Contents>
  <CommonPrefixes><Prefix>photos/</Prefix></CommonPrefixes>
</ListBucketResult>
)";

TEST(S3ListTest, ReadsAPage) {
  const auto page = ParseS3ListPage(kPage);
  ASSERT_TRUE(page) << page.error().text;
  ASSERT_EQ(page->objects.size(), 2u);
  EXPECT_EQ(page->objects[0].key, "a b+c/ü&<\x01&.bin");
  EXPECT_EQ(page->objects[0].bytes, 434234u);
  EXPECT_EQ(page->objects[0].etag, "\"fba9dede5f27731c9771645a39863328\"");
  EXPECT_EQ(page->objects[1].key, "x<y>");
  EXPECT_EQ(page->next_token, "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=");
}

TEST(S3ListTest, ALastPageHasNoToken) {
  const auto page = ParseS3ListPage(
      "<ListBucketResult><IsTruncated>false</IsTruncated><NextContinuationToken>x</NextContinuationToken>"
      "</ListBucketResult>");
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->objects.empty());
  EXPECT_EQ(page->next_token, "");
}

TEST(S3ListTest, ATruncatedPageIsAnError) {
  const size_t whole = kPage.rfind('>') + 1;
  for (size_t bytes = 0; bytes < whole; ++bytes) {
    EXPECT_FALSE(ParseS3ListPage(kPage.substr(0, bytes))) << bytes;
  }
}

TEST(S3ListTest, RefusesWhatIsNotAListing) {
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "<a>";
  for (const std::string& text :
       {std::string("<html><body>Login</body></html>"), std::string("not XML"), deep,
        std::string("<ListBucketResult><Contents><Key>no size</Key></Contents></ListBucketResult>"),
        std::string("<ListBucketResult><Contents><Size>-1</Size></Contents></ListBucketResult>"),
        std::string("<ListBucketResult><Contents><Size>many</Size></Contents></ListBucketResult>"),
        std::string("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"),
        std::string("<ListBucketResult></ListBucketResult><ListBucketResult></ListBucketResult>"),
        std::string("<ListBucketResult></Other>")}) {
    EXPECT_FALSE(ParseS3ListPage(text)) << text.substr(0, 80);
  }
}

TEST(S3ListTest, EntitiesOfADocumentsOwnStayAsTheyStand) {
  const auto page = ParseS3ListPage(
      "<!DOCTYPE x [<!ENTITY a 'bbbbbbbb'><!ENTITY f SYSTEM 'file:///etc/passwd'>]>"
      "<ListBucketResult><Contents><Key>&a;&f;</Key><Size>1</Size></Contents></ListBucketResult>");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->objects[0].key, "&a;&f;");
}

TEST(S3ListTest, DepthCostsNoStack) {
  constexpr int kDepth = 300'000;
  std::string deep = "<ListBucketResult>";
  for (int i = 0; i < kDepth; ++i) deep += "<a>";
  for (int i = 0; i < kDepth; ++i) deep += "</a>";
  EXPECT_TRUE(ParseS3ListPage(deep + "</ListBucketResult>"));
}

TEST(S3ErrorTest, ReadsCodeAndMessage) {
  const auto error = ParseS3Error(
      "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code><Message>It is &quot;gone&quot;</Message>"
      "<Region>eu-west-1</Region></Error>");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, "NoSuchBucket");
  EXPECT_EQ(error->message, "It is \"gone\"");
  EXPECT_EQ(error->region, "eu-west-1");
}

TEST(S3ErrorTest, ATruncatedOneStillHasItsCode) {
  const auto error = ParseS3Error("<Error><Code>SlowDown</Code><Message>Please re");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, "SlowDown");
  EXPECT_FALSE(ParseS3Error("<Error><Co"));
  EXPECT_FALSE(ParseS3Error("<html></html>"));
}

}  // namespace
}  // namespace fullbore::loader::remote
