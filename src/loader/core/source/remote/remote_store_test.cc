#include "loader/core/source/remote/remote_store.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "loader/core/source/remote/testing/fault_server.h"

namespace fullbore::loader {
namespace {

using remote::testing::FaultServer;
using remote::testing::ServedAnswer;
using remote::testing::ServedRequest;
using remote::testing::ServeObject;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

std::string SomeData(size_t bytes) {
  std::string data(bytes, '\0');
  uint32_t state = 1;
  for (char& c : data) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return data;
}

const std::string& Data() {
  static const std::string data = SomeData(1'000'000);
  return data;
}

SourceOptions WithoutCache() {
  SourceOptions options;
  options.cache_bytes = 0;
  options.retries = 2;
  return options;
}

class RemoteStoreTest : public ::testing::Test {
 protected:
  // Serves Data(); the test's handler may answer the n-th request for bytes, counted from 0.
  using Fault = std::function<std::optional<ServedAnswer>(int number, const ServedRequest& request)>;

  RemoteStoreTest() { setenv("no_proxy", "127.0.0.1", 1); }

  void Serve(Fault fault = nullptr, const SourceOptions& options = WithoutCache()) {
    server_.emplace([this, fault](const ServedRequest& request) {
      const bool get = request.method == "GET";
      if (auto answer = fault && get ? fault(gets_++, request) : std::nullopt) return *answer;
      return ServeObject(request, Data(), "\"v1\"");
    });
    auto opened = OpenRemoteStore(server_->url(), options);
    ASSERT_TRUE(opened) << opened.error().text;
    store_ = *opened;
  }

  StoredFile File() { return {server_->url() + "/data.tar", Data().size(), "\"v1\""}; }

  Result<std::string> Read(uint64_t offset, size_t bytes) { return Read(File(), offset, bytes); }
  Result<std::string> Read(const StoredFile& file, uint64_t offset, size_t bytes) {
    std::string out(bytes, '\0');
    auto read = store_->Read(file, offset, {reinterpret_cast<uint8_t*>(out.data()), bytes});
    if (!read) return read.error();
    return out;
  }

  std::vector<std::string> Messages() {
    std::vector<std::string> texts;
    for (const auto& message : store_->TakeMessages()) texts.push_back(message.text);
    return texts;
  }

  std::atomic<int> gets_{0};
  std::optional<FaultServer> server_;
  std::shared_ptr<Store> store_;
};

TEST_F(RemoteStoreTest, StatTellsLengthAndVersion) {
  Serve();
  const auto file = store_->Stat(server_->url() + "/data.tar");
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(file->bytes, Data().size());
  EXPECT_EQ(file->version, "\"v1\"");
}

TEST_F(RemoteStoreTest, StatWorksWhereHeadIsRefused) {
  FaultServer server([](const ServedRequest& request) {
    return request.method == "HEAD" ? ServedAnswer{.status = 403} : ServeObject(request, Data(), "\"v1\"");
  });
  const auto file =
      (*OpenRemoteStore(server.url(), WithoutCache()))->Stat(server.url() + "/signed?X-Signature=1");
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(file->bytes, Data().size());
}

TEST_F(RemoteStoreTest, ReadsARangeOverOneConnection) {
  Serve();
  for (int i = 0; i < 5; ++i) {
    const uint64_t offset = static_cast<uint64_t>(4 - i) * 200'000 + 7;
    const auto read = Read(offset, 1000);
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(*read, Data().substr(offset, 1000));
  }
  EXPECT_TRUE(Messages().empty());
}

TEST_F(RemoteStoreTest, AReadBeyondTheEndIsCorrupt) {
  Serve();
  EXPECT_EQ(Read(Data().size() - 10, 11).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Read(Data().size() + 1, 0).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(Read(Data().size(), 0));
}

TEST_F(RemoteStoreTest, TriesAgainAfterAServersErrorsAndSaysSo) {
  Serve([](int number, const ServedRequest&) -> std::optional<ServedAnswer> {
    if (number == 0) return ServedAnswer{.status = 503, .headers = {{"Retry-After", "0"}}};
    if (number == 1) return ServedAnswer{.status = 500};
    return std::nullopt;
  });
  const auto read = Read(100, 1000);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(*read, Data().substr(100, 1000));
  const auto messages = Messages();
  EXPECT_THAT(messages, Contains(HasSubstr("the server answers 503; retry in")));
  EXPECT_THAT(messages, Contains(HasSubstr("answers again")));
}

TEST_F(RemoteStoreTest, GivesUpAfterTheRetries) {
  Serve([](int, const ServedRequest&) { return ServedAnswer{.status = 502}; });
  const auto read = Read(0, 10);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(read.error().text, HasSubstr("502"));
  EXPECT_EQ(gets_, 3);
}

TEST_F(RemoteStoreTest, DoesNotAskAgainForWhatIsRefused) {
  for (const auto& [status, code] :
       {std::pair(403, ErrorCode::kPermission), std::pair(404, ErrorCode::kNotFound),
        std::pair(410, ErrorCode::kNotFound)}) {
    gets_ = 0;
    Serve([status = status](int, const ServedRequest&) { return ServedAnswer{.status = status}; });
    const auto read = Read(0, 10);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, code);
    EXPECT_EQ(gets_, 1);
  }
}

TEST_F(RemoteStoreTest, GoesOnWhereAPartialBodyEnded) {
  Serve([](int number, const ServedRequest& request) -> std::optional<ServedAnswer> {
    auto answer = ServeObject(request, Data(), "\"v1\"");
    if (number < 5) answer.cut_after = 150'000;  // more often than there are retries: each made progress
    return answer;
  });
  const auto read = Read(0, Data().size());
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(*read, Data());
  EXPECT_EQ(server_->requests()[1].headers.at("range"), "bytes=150000-999999");
}

TEST_F(RemoteStoreTest, AnEndlessDripOfNothingIsGivenUp) {
  Serve([](int, const ServedRequest& request) -> std::optional<ServedAnswer> {
    auto answer = ServeObject(request, Data(), "\"v1\"");
    answer.cut_after = 1;
    return answer;
  });
  EXPECT_EQ(Read(0, 1000).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(gets_, 3);
}

TEST_F(RemoteStoreTest, NoticesAnObjectThatChanged) {
  // By If-Match; by a server that ignores it; by the length alone.
  for (int kind = 0; kind < 3; ++kind) {
    Serve([kind](int, const ServedRequest& request) -> std::optional<ServedAnswer> {
      if (kind == 0) return ServeObject(request, Data(), "\"v2\"");
      auto ignoring = request;
      ignoring.headers.erase("if-match");
      if (kind == 1) return ServeObject(ignoring, Data(), "\"v2\"");
      return ServeObject(ignoring, Data() + "more", "\"v1\"");
    });
    const auto read = Read(10, 100);
    ASSERT_FALSE(read) << kind;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(read.error().text, HasSubstr("changed while it was in use"));
  }
}

TEST_F(RemoteStoreTest, NoticesAChangeBetweenTwoHalvesOfARead) {
  Serve([](int number, const ServedRequest& request) -> std::optional<ServedAnswer> {
    auto asked = request;
    asked.headers.erase("if-match");
    auto answer = ServeObject(asked, Data(), number == 0 ? "\"v1\"" : "\"v2\"");
    if (number == 0) answer.cut_after = 100'000;
    return answer;
  });
  const StoredFile unknown{server_->url() + "/data.tar", Data().size(), ""};
  EXPECT_EQ(Read(unknown, 0, 200'000).error().code, ErrorCode::kCorrupt);
}

TEST_F(RemoteStoreTest, TakesTheRangeOutOfAWholeBody) {
  Serve([](int, const ServedRequest&) {
    return ServedAnswer{.headers = {{"ETag", "\"v1\""}}, .body = Data()};
  });
  const auto read = Read(500'000, 1000);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(*read, Data().substr(500'000, 1000));
  EXPECT_THAT(Messages(), Contains(HasSubstr("ignores the range")));
}

TEST_F(RemoteStoreTest, RefusesBytesFromAnotherPlace) {
  Serve([](int, const ServedRequest& request) {
    auto elsewhere = request;
    elsewhere.headers["range"] = "bytes=1-10";
    return ServeObject(elsewhere, Data(), "\"v1\"");
  });
  EXPECT_FALSE(Read(500, 10));
}

TEST_F(RemoteStoreTest, FollowsRedirectsButNotInCircles) {
  Serve([](int, const ServedRequest& request) -> std::optional<ServedAnswer> {
    if (request.path == "/data.tar")
      return ServedAnswer{.status = 302, .headers = {{"Location", "/moved.tar"}}};
    if (request.path == "/circle") return ServedAnswer{.status = 302, .headers = {{"Location", "/circle"}}};
    return std::nullopt;
  });
  EXPECT_EQ(*Read(5, 5), Data().substr(5, 5));
  EXPECT_FALSE(Read({server_->url() + "/circle", 10, ""}, 0, 10));
}

// The server promises a gigabyte of explanation, and never ends.
TEST_F(RemoteStoreTest, ReadsNoMoreOfARefusalThanItShows) {
  auto options = WithoutCache();
  options.timeout_s = 600;  // the test's patience, not ours: what is over is not waited for
  Serve(
      [](int, const ServedRequest&) {
        return ServedAnswer{.status = 403,
                            .headers = {{"Content-Length", "1000000000"}},
                            .body = std::string(200'000, 'x'),
                            .hold = true};
      },
      options);
  const auto read = Read(0, 100);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kPermission);
  EXPECT_THAT(read.error().text, HasSubstr("403"));
  EXPECT_EQ(gets_, 1);
}

TEST_F(RemoteStoreTest, CredentialsGoToTheHostOfTheUrlAlone) {
  Serve();
  std::optional<FaultServer> first(std::in_place, [this](const ServedRequest&) {
    return ServedAnswer{.status = 302, .headers = {{"Location", server_->url() + "/data.tar"}}};
  });
  StoredFile file = File();
  file.path = first->url() + "/data.tar";
  file.path.insert(file.path.find("//") + 2, "me:secret@");
  const auto read = Read(file, 0, 100);
  ASSERT_TRUE(read) << read.error().text;
  ASSERT_FALSE(first->requests().empty());
  for (const auto& request : first->requests()) EXPECT_THAT(request.headers, Contains(Key("authorization")));
  ASSERT_FALSE(server_->requests().empty());
  for (const auto& request : server_->requests())
    EXPECT_THAT(request.headers, Not(Contains(Key("authorization"))));
}

TEST_F(RemoteStoreTest, NoMessageTellsTheSecretsOfAUrl) {
  Serve([](int number, const ServedRequest&) {
    return number == 0 ? ServedAnswer{.status = 503} : ServedAnswer{.status = 403};
  });
  StoredFile file = File();
  file.path += "?X-Amz-Signature=secret";
  file.path.insert(file.path.find("//") + 2, "me:secret@");
  const auto read = Read(file, 0, 100);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().text,
              AllOf(HasSubstr("://***@127.0.0.1"), HasSubstr("?***"), Not(HasSubstr("secret"))));
  for (const std::string& message : Messages()) EXPECT_THAT(message, Not(HasSubstr("secret")));
  const auto list = store_->List(file.path);
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().text, Not(HasSubstr("secret")));
}

TEST_F(RemoteStoreTest, ASilentServerIsGivenUpAfterItsTime) {
  auto options = WithoutCache();
  options.timeout_s = 0.2;
  options.retries = 1;
  Serve(
      [](int, const ServedRequest&) { return ServedAnswer{.body = Data(), .cut_after = 100, .hold = true}; },
      options);
  const auto read = Read(0, 1000);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(read.error().text, HasSubstr("no data for"));
}

TEST_F(RemoteStoreTest, CancelEndsATransferAndAPauseAndNothingLater) {
  // Longer than the test may take, if cancelling did not work.
  Serve([](int number, const ServedRequest&) -> std::optional<ServedAnswer> {
    if (number == 0) return ServedAnswer{.body = Data(), .cut_after = 100, .hold = true};
    if (number == 1) return ServedAnswer{.status = 503, .headers = {{"Retry-After", "60"}}};
    return std::nullopt;
  });
  for (int kind = 0; kind < 2; ++kind) {
    std::optional<Error> error;
    std::thread reader([&] { error = Read(0, 1000).error(); });
    while (gets_ <= kind) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // into the wait; before it works as well
    store_->Cancel();
    reader.join();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::kUnavailable);
    EXPECT_THAT(error->text, HasSubstr("cancelled"));
  }
  EXPECT_TRUE(Read(0, 1000));
}

TEST_F(RemoteStoreTest, ManyThreadsReadAndNothingIsLeftOpen) {
  const auto count = [] {
    const std::filesystem::directory_iterator entries("/proc/self/fd");
    return std::distance(begin(entries), end(entries));
  };
  Serve();
  const auto before = count();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (uint64_t offset = 100 * static_cast<uint64_t>(i); offset + 1000 < Data().size();
           offset += 50'000) {
        const auto read = Read(offset, 1000);
        wrong += !read || *read != Data().substr(offset, 1000);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  store_.reset();
  server_.reset();
  EXPECT_LE(count(), before);
}

TEST_F(RemoteStoreTest, AForkedChildReadsOverConnectionsOfItsOwn) {
  Serve();
  ASSERT_TRUE(Read(0, 1000));
  const pid_t child = fork();
  if (child == 0) {
    bool right = true;
    for (uint64_t i = 0; i < 20; ++i) {
      const auto read = Read(i * 40'000, 1000);
      right = right && read && *read == Data().substr(i * 40'000, 1000);
    }
    store_.reset();
    _exit(right ? 0 : 1);
  }
  for (uint64_t i = 0; i < 20; ++i)
    EXPECT_EQ(*Read(i * 30'000 + 7, 1000), Data().substr(i * 30'000 + 7, 1000));
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*Read(5, 1000), Data().substr(5, 1000));
  EXPECT_TRUE(Messages().empty());  // nothing had to be asked again
}

TEST_F(RemoteStoreTest, WhatIsCachedIsNotAskedForAgain) {
  const auto directory =
      std::filesystem::path(::testing::TempDir()) / ("remote_store_test_" + std::to_string(getpid()));
  std::filesystem::remove_all(directory);
  auto options = WithoutCache();
  options.cache_directory = directory;
  options.cache_bytes = 100'000'000;
  Serve([](int, const ServedRequest&) { return std::nullopt; }, options);
  EXPECT_EQ(*Read(100, 1000), Data().substr(100, 1000));
  EXPECT_EQ(*Read(900'000, 1000), Data().substr(900'000, 1000));
  EXPECT_EQ(gets_, 1);
  auto again = OpenRemoteStore(server_->url(), options);
  store_ = *again;
  EXPECT_EQ(*Read(5000, 1000), Data().substr(5000, 1000));
  EXPECT_EQ(gets_, 1);
  std::filesystem::remove_all(directory);
}

TEST_F(RemoteStoreTest, WithoutAVersionNothingIsCached) {
  const auto directory =
      std::filesystem::path(::testing::TempDir()) / ("remote_store_test_" + std::to_string(getpid()));
  std::filesystem::remove_all(directory);
  auto options = WithoutCache();
  options.cache_directory = directory;
  options.cache_bytes = 100'000'000;
  Serve([](int, const ServedRequest&) { return std::nullopt; }, options);
  const StoredFile unknown{server_->url() + "/data.tar", Data().size(), ""};
  EXPECT_TRUE(Read(unknown, 100, 1000));
  EXPECT_TRUE(Read(unknown, 100, 1000));
  EXPECT_EQ(gets_, 2);
  EXPECT_THAT(Messages(), Contains(HasSubstr("not cached")));
  std::filesystem::remove_all(directory);
}

TEST_F(RemoteStoreTest, HttpHasNoListing) {
  Serve();
  const auto listed = store_->List(server_->url() + "/");
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(listed.error().hint, HasSubstr("{000..012}"));
}

TEST(OpenRemoteStoreTest, RefusesWhatCannotBeUsed) {
  SourceOptions options = WithoutCache();
  EXPECT_FALSE(OpenRemoteStore("/local/path", options));
  EXPECT_FALSE(OpenRemoteStore("s3://", options));
  options.s3_endpoint = "nowhere";
  EXPECT_FALSE(OpenRemoteStore("s3://bucket/x", options));
  options.timeout_s = 0;
  EXPECT_FALSE(OpenRemoteStore("http://host/x", options));
}

}  // namespace
}  // namespace fullbore::loader
