#include "serve/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"

namespace fullbore::serve {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ServerTest : public ::testing::Test {
 protected:
  struct Got {
    std::string text;
    bool closed = false;  // by the server
  };

  void Listen(const Limits& limits) {
    auto server = Server::Listen(
        "127.0.0.1:0", [this](const Request&) { return answer_; }, limits);
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
  }
  UniqueFd Asking(const std::string& method) const {
    const std::string& address = server_->address();
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(*ParseInt(address.substr(address.rfind(':') + 1))));
    UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    const std::string request = method + " / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    EXPECT_EQ(send(client.get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    return client;
  }
  // What it gets until the server closes, or nothing comes for a second.
  Got Take(const UniqueFd& client) {
    Got got;
    for (int64_t last_ns = MonotonicNs(); MonotonicNs() - last_ns < kNsPerSecond;) {
      server_->Serve(MonotonicNs());
      char bytes[4096];
      const ssize_t count = recv(client.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      got.closed = count == 0;
      if (got.closed) return got;
      if (count < 0) continue;
      got.text.append(bytes, static_cast<size_t>(count));
      last_ns = MonotonicNs();
    }
    return got;
  }

  std::unique_ptr<Server> server_;
  Response answer_;
};

TEST_F(ServerTest, AnAnswerThatCanNeverBeKeptIsNotWorthAnotherTry) {
  Listen({.unsent_bytes = 1000});
  answer_ = Response::Of("text/plain", std::string(1001, 'x'));
  const Got got = Take(Asking("GET"));
  EXPECT_THAT(got.text, StartsWith("HTTP/1.1 507 "));
  EXPECT_THAT(got.text, Not(HasSubstr("try again")));
  EXPECT_TRUE(got.closed);
}

TEST_F(ServerTest, AnAnswerThatOthersLeaveNoRoomForIsWorthAnotherTry) {
  Listen({.unsent_bytes = 64 << 20});
  answer_ = Response::Of("text/plain", std::string(60 << 20, 'x'));  // far above what sockets hold
  const UniqueFd deaf = Asking("GET");
  char first = 0;
  while (recv(deaf.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1) server_->Serve(MonotonicNs());
  const Got got = Take(Asking("GET"));
  EXPECT_THAT(got.text, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(got.text, HasSubstr("try again"));
}

TEST_F(ServerTest, AnAnswerThatComesLaterKeepsNobodyElseWaiting) {
  Listen({});
  answer_ = Response::Later();
  const UniqueFd patient = Asking("GET");
  while (!server_->waits()) server_->Serve(MonotonicNs());
  answer_ = Response::Of("text/plain", "soon");
  EXPECT_THAT(Take(Asking("GET")).text, EndsWith("soon"));
  EXPECT_THAT(Take(patient).text, EndsWith("soon"));
  EXPECT_FALSE(server_->waits());
}

TEST_F(ServerTest, AnAnswerThatNeverComesIsGivenUp) {
  Listen({.answer_ns = 0});
  answer_ = Response::Later();
  const Got got = Take(Asking("GET"));
  EXPECT_THAT(got.text, StartsWith("HTTP/1.1 503 "));
  EXPECT_TRUE(got.closed);
}

TEST_F(ServerTest, WhoGoesAwayIsNotWaitedFor) {
  Listen({});
  answer_ = Response::Later();
  UniqueFd client = Asking("GET");
  while (!server_->waits()) server_->Serve(MonotonicNs());
  client.reset();
  while (server_->waits()) server_->Serve(MonotonicNs());
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(ServerTest, TheHeadOfAStreamIsAllThatHeadGets) {
  Listen({});
  answer_ = Response::Of("text/event-stream", "retry: 5000\n\n");
  answer_.stream = "run/a";
  const Got got = Take(Asking("HEAD"));
  EXPECT_THAT(got.text, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(got.text, EndsWith("\r\n\r\n"));
  EXPECT_TRUE(got.closed);
  EXPECT_FALSE(server_->HasListeners("run/a"));
}

TEST_F(ServerTest, WhoListensToAStreamGetsItsEvents) {
  Listen({});
  answer_ = Response::Of("text/event-stream", "retry: 5000\n\n");
  answer_.stream = "run/a";
  const UniqueFd listener = Asking("GET");
  EXPECT_FALSE(Take(listener).closed);
  EXPECT_TRUE(server_->HasListeners("run/a"));
  server_->Publish("run/b", "live", "other");
  server_->Publish("run/a", "live", "{}");
  EXPECT_EQ(Take(listener).text, "event: live\ndata: {}\n\n");
}

TEST(ServerAddressTest, WithoutAHostItListensToEveryAddress) {
  const auto server = Server::Listen(":0", [](const Request&) { return Response(); });
  ASSERT_TRUE(server) << server.error().text;
  EXPECT_FALSE((*server)->address().starts_with("127."));
  EXPECT_FALSE(Server::Listen("7788", [](const Request&) { return Response(); }));
}

}  // namespace
}  // namespace fullbore::serve
