#include "serve/http.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cctype>

#include "serve/access.h"

namespace fullbore::serve {
namespace {

using State = Parsed::State;

Request Ask(const std::string& target, const std::string& headers = "", const std::string& method = "GET") {
  const Parsed parsed =
      Parse(method + " " + target + " HTTP/1.1\r\nHost: localhost:7788\r\n" + headers + "\r\n");
  EXPECT_EQ(parsed.state, State::kComplete) << target;
  return parsed.request;
}

int RefusedWith(const std::string& bytes) {
  const Parsed parsed = Parse(bytes);
  EXPECT_EQ(parsed.state, State::kRefused) << bytes.substr(0, 100);
  return parsed.refusal.status;
}

TEST(HttpTest, ReadsPathQueryHeadersAndBody) {
  const Parsed parsed = Parse(
      "PUT /api/v1/runs/a%20b/note?q=tag%3Alr+x&y HTTP/1.1\r\nHost: a\r\nX-Some:  thing \r\nCookie: a=1; "
      "b=2\r\nContent-Length: 3\r\n\r\nabcdef");
  ASSERT_EQ(parsed.state, State::kComplete);
  const Request& request = parsed.request;
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.path, (std::vector<std::string>{"api", "v1", "runs", "a b", "note"}));
  EXPECT_EQ(request.Query("q"), "tag:lr x");
  EXPECT_EQ(request.Header("x-some"), "thing");
  EXPECT_EQ(request.Cookie("b"), "2");
  EXPECT_EQ(request.body, "abc");
}

TEST(HttpTest, ARequestThatIsCutOffAnywhereIsWaitedFor) {
  const std::string whole = "GET /a?b=c HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody";
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_EQ(Parse(whole.substr(0, bytes)).state, State::kMore) << bytes;
  EXPECT_EQ(Parse(whole).state, State::kComplete);
}

TEST(HttpTest, WhatIsNotExactlyARequestIsRefused) {
  EXPECT_EQ(RefusedWith("GET / HTTP/2\r\n\r\n"), 400);
  EXPECT_EQ(RefusedWith("GET /\r\n\r\n"), 400);
  EXPECT_EQ(RefusedWith("GET http://elsewhere/ HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(RefusedWith("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), 400);
  EXPECT_EQ(RefusedWith("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(RefusedWith("GET / HTTP/1.1\r\nA: \x01\r\n\r\n"), 400);
  EXPECT_EQ(RefusedWith("PUT / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(RefusedWith("PUT / HTTP/1.1\r\nContent-Length:\r\n\r\n"), 400);
  EXPECT_EQ(RefusedWith("PUT / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n"), 413);
  EXPECT_EQ(RefusedWith("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 501);
  EXPECT_EQ(RefusedWith("GET / HTTP/1.1\r\nA: " + std::string(kMaxHeadBytes, 'a')), 431);
}

TEST(HttpTest, APathCannotClimb) {
  for (const char* path : {"/../x", "/assets/..", "/assets/%2e%2e", "/assets/..%2fx", "/a%00b", "/%zz", "/."})
    EXPECT_EQ(RefusedWith("GET " + std::string(path) + " HTTP/1.1\r\n\r\n"), 400) << path;
}

TEST(AccessTest, OnLoopbackEverybodyReadsAndNobodyWrites) {
  const Access access("127.0.0.1:7788", std::nullopt);
  EXPECT_FALSE(access.Refusal(Ask("/")));
  EXPECT_EQ(access.Refusal(Ask("/", "", "PUT"))->status, 403);
  EXPECT_EQ(access.Refusal(Ask("/", "", "DELETE"))->status, 405);
}

TEST(AccessTest, AForeignNameOrOriginIsRefused) {
  const Access access("127.0.0.1:7788", std::nullopt);
  EXPECT_FALSE(access.Refusal(Ask("/", "Origin: http://localhost:7788\r\n")));
  EXPECT_EQ(access.Refusal(Ask("/", "Origin: https://evil.example\r\n"))->status, 403);
  EXPECT_EQ(access.Refusal(Ask("/", "Origin: null\r\n"))->status, 403);
  for (const char* host :
       {"evil.example", "127.0.0.1.evil.example:7788", "10.0.0.1", "", "[::2]:80", "localhost.evil:1"}) {
    Request request = Ask("/");
    request.headers["host"] = host;
    ASSERT_TRUE(access.Refusal(request)) << host;
    EXPECT_EQ(access.Refusal(request)->status, 421) << host;
  }
  for (const char* host : {"localhost", "127.0.0.1:9999", "[::1]:7788"}) {
    Request request = Ask("/");
    request.headers["host"] = host;
    EXPECT_FALSE(access.Refusal(request)) << host;
  }
}

// Host names are the same in capitals and in small letters, and many machines have capitals in theirs.
TEST(AccessTest, ItsNameIsTheSameInCapitals) {
  const auto status = [](const Access& access, const std::string& host) {
    Request request = Ask("/healthz");
    request.headers["host"] = host;
    const auto refusal = access.Refusal(request);
    return refusal ? refusal->status : 200;
  };
  const Access loopback("127.0.0.1:7788", std::nullopt);
  EXPECT_EQ(status(loopback, "LocalHost:7788"), 200);
  EXPECT_EQ(status(loopback, "LocalHost"), 200);
  EXPECT_EQ(status(Access("Box.Example:7788", "0123456789abcdef"), "box.example:7788"), 200);

  std::array<char, 256> name{};
  ASSERT_EQ(gethostname(name.data(), name.size() - 1), 0);
  const Access everywhere("0.0.0.0:7788", "0123456789abcdef");
  std::string capitals = name.data(), small = capitals;
  for (char& c : capitals) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  EXPECT_EQ(status(everywhere, capitals + ":7788"), 200) << capitals;
  EXPECT_EQ(status(everywhere, small), 200) << small;
}

TEST(AccessTest, ElsewhereReadingNeedsTheTokenByHeaderOrCookie) {
  const Access access("0.0.0.0:7788", "0123456789abcdef");
  EXPECT_EQ(access.Refusal(Ask("/metrics"))->status, 401);
  EXPECT_FALSE(access.Refusal(Ask("/healthz")));
  EXPECT_FALSE(access.Refusal(Ask("/metrics", "Authorization: Bearer 0123456789abcdef\r\n")));
  EXPECT_FALSE(access.Refusal(Ask("/metrics", "Cookie: fullbore_token=0123456789abcdef\r\n")));
  for (const char* wrong :
       {"", "0", "0123456789abcdeX", "0123456789abcdef0123456789abcdef", "0123456789abcde"})
    EXPECT_EQ(access.Refusal(Ask("/metrics", "Authorization: Bearer " + std::string(wrong) + "\r\n"))->status,
              401)
        << wrong;
}

}  // namespace
}  // namespace fullbore::serve
