#include "serve/api.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>

#include "base/testing/scratch_directory.h"
#include "watch/testing/live_writer.h"

namespace fullbore::serve {
namespace {

// Reading a run of days takes long enough: nobody else is answered meanwhile.
TEST(ApiTest, SeriesAreReadWithoutADiagnosis) {
  const ScratchDirectory directory;
  watch::testing::LiveWriter(directory.path(), "a", 0.6).Seconds(3).End();
  watch::RunsFolder folder({directory.path()}, {.of_a_core_for_ended = 0});
  folder.Tick(MonotonicNs(), WallNs());
  bool diagnosed = false;
  const auto explain = [&](const std::string&) -> Result<report::Explained> {
    diagnosed = true;
    return Error{ErrorCode::kUnavailable, "not now", ""};
  };
  Api api(Parts{folder, explain, nullptr}, Access("127.0.0.1:7788", std::nullopt));
  Request request;
  request.method = "GET";
  request.path = {"api", "v1", "runs", "a", "series.csv"};
  request.headers["host"] = "localhost";
  const Response response = api.Answer(request);
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(*response.body, ::testing::HasSubstr("\ntrain,cpu_utilization,ratio,1.000,0.4\n"));
  EXPECT_FALSE(diagnosed);
}

TEST(ApiTest, WhoAsksForARunThatIsBeingJudgedIsAnsweredLaterAndOthersAtOnce) {
  const ScratchDirectory directory;
  watch::testing::LiveWriter(directory.path(), "a", 0.6).Seconds(3).End();
  watch::RunsFolder folder({directory.path()}, {.of_a_core_for_ended = 0});
  folder.Tick(MonotonicNs(), WallNs());
  const auto go = std::make_shared<std::atomic<bool>>(false);
  const auto explain = [go](const std::string&) -> Result<report::Explained> {
    go->wait(false);
    return Error{ErrorCode::kUnavailable, "not now", ""};
  };
  Api api(Parts{folder, explain, nullptr, /*waits_ns=*/0}, Access("127.0.0.1:7788", std::nullopt));
  const auto ask = [&](std::vector<std::string> path) {
    Request request;
    request.method = "GET";
    request.path = std::move(path);
    request.headers["host"] = "localhost";
    return api.Answer(request);
  };
  EXPECT_TRUE(ask({"api", "v1", "runs", "a"}).later);
  EXPECT_EQ(ask({"healthz"}).status, 200);
  EXPECT_EQ(ask({"api", "v1", "runs"}).status, 200);
  *go = true;
  go->notify_all();
  Response response = Response::Later();
  while (response.later) response = ask({"api", "v1", "runs", "a"});
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(*response.body, ::testing::HasSubstr("not now"));
}

}  // namespace
}  // namespace fullbore::serve
