#include "loader/core/source/remote/http_headers.h"

#include <gtest/gtest.h>

namespace fullbore::loader::remote {
namespace {

TEST(ContentRangeTest, ReadsItsThreeForms) {
  const auto whole = ParseContentRange("bytes 5-9/20");
  ASSERT_TRUE(whole);
  EXPECT_TRUE(whole->has_range);
  EXPECT_EQ(whole->first, 5u);
  EXPECT_EQ(whole->last, 9u);
  EXPECT_EQ(whole->total, 20u);
  EXPECT_FALSE(ParseContentRange("Bytes 5-9/*")->total);
  EXPECT_FALSE(ParseContentRange("bytes */20")->has_range);
  EXPECT_EQ(ParseContentRange("bytes */20")->total, 20u);
}

TEST(ContentRangeTest, RefusesWhatCannotBe) {
  for (const char* value :
       {"", "bytes", "bytes ", "bytes 5-9", "bytes 9-5/20", "bytes 5-20/20", "bytes -5/20", "items 5-9/20",
        "bytes 5-9/x", "bytes 5-99999999999999999999/*", "bytes 5 -9/20"}) {
    EXPECT_FALSE(ParseContentRange(value)) << value;
  }
}

TEST(RetryAfterTest, ReadsSecondsAndDates) {
  EXPECT_EQ(ParseRetryAfter(" 120 ", 0), 120);
  // 784111777 is the time of RFC 9110's example.
  EXPECT_EQ(ParseRetryAfter("Sun, 06 Nov 1994 08:49:37 GMT", 784111777 - 30), 30);
  EXPECT_EQ(ParseRetryAfter("Sun, 06 Nov 1994 08:49:37 GMT", 784111777 + 30), 0);
  EXPECT_FALSE(ParseRetryAfter("soon", 0));
  EXPECT_FALSE(ParseRetryAfter("", 0));
}

TEST(ResponseHeadersTest, AStatusLineStartsOver) {
  ResponseHeaders headers;
  for (const char* line : {"HTTP/1.1 302 Found\r\n", "ETag: \"of the redirect\"\r\n", "HTTP/1.1 200 OK\r\n",
                           "content-LENGTH: 12\r\n", "Last-Modified: today\r\n", "\r\n"}) {
    headers.Take(line, 0);
  }
  EXPECT_EQ(headers.status, 200);
  EXPECT_EQ(headers.content_length, 12u);
  EXPECT_EQ(headers.total_bytes(), 12u);
  EXPECT_EQ(headers.etag, "");
  EXPECT_EQ(headers.version(), "modified today");
}

TEST(ResponseHeadersTest, TheLengthOfAPartIsNotThatOfTheObject) {
  ResponseHeaders headers;
  headers.Take("HTTP/1.1 206 Partial Content", 0);
  headers.Take("Content-Length: 5", 0);
  EXPECT_FALSE(headers.total_bytes());
  headers.Take("Content-Range: bytes 5-9/20", 0);
  EXPECT_EQ(headers.total_bytes(), 20u);
}

TEST(VersionTest, ComparesOnlyWhatCanBeCompared) {
  EXPECT_TRUE(VersionsDiffer("\"a\"", "\"b\""));
  EXPECT_FALSE(VersionsDiffer("\"a\"", "W/\"a\""));
  EXPECT_FALSE(VersionsDiffer("a", "\"a\""));
  EXPECT_FALSE(VersionsDiffer("", "\"b\""));
  EXPECT_FALSE(VersionsDiffer("modified today", "\"b\""));
  EXPECT_TRUE(VersionsDiffer("modified today", "modified tomorrow"));
}

TEST(VersionTest, OnlyAStrongEtagCanBeAskedFor) {
  EXPECT_EQ(IfMatchValue("\"a\""), "\"a\"");
  EXPECT_EQ(IfMatchValue("a"), "\"a\"");
  EXPECT_EQ(IfMatchValue("W/\"a\""), "");
  EXPECT_EQ(IfMatchValue("modified today"), "");
  EXPECT_EQ(IfMatchValue(""), "");
}

}  // namespace
}  // namespace fullbore::loader::remote
