#include "watch/notify/sentinel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/testing/scratch_directory.h"
#include "record/metrics.h"
#include "record/run_reader.h"
#include "record/run_writer.h"
#include "watch/alert/rules_file.h"

namespace fullbore::watch {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Courier::Patience kImpatient = {1'000'000, 4'000'000, 60'000'000'000};
constexpr Courier::Patience kPatient = {1'000 * kNsPerSecond, 1'000 * kNsPerSecond, 10'000 * kNsPerSecond};

// A run with one series, whose level a test sets second by second; time does not pass by itself.
class SentinelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = record::RunWriter::Open(path_, {"run-1", "train", {"python"}, "/", {}}, kNsPerSecond,
                                          5 * kNsPerSecond);
    ASSERT_TRUE(writer.ok());
    writer_.emplace(std::move(*writer));
  }

  RuleSet Rules(const std::string& notify) {
    const auto rules = ParseRules(
        "[[alert]]\nname = \"busy\"\nseries = \"load1\"\nabove = 5\nfor = \"5s\"\nnotify = [" + notify + "]",
        "test");
    EXPECT_TRUE(rules.ok()) << (rules.ok() ? "" : ToString(rules.error()));
    return *rules;
  }
  std::unique_ptr<Sentinel> Watch(const std::string& notify, const Courier::Patience& patience = kImpatient) {
    return std::make_unique<Sentinel>(
        path_, Rules(notify), [this](const std::string& line) { said_.push_back(line); },
        std::make_shared<Courier>(patience), own_);
  }
  std::string Page() {
    const std::string path = directory_.path() + "/page";
    std::ofstream(path) << "#!/bin/sh\ncd '" << directory_.path()
                        << "'\n[ -e down ] && exit 1\necho $FULLBORE_ALERT_STATE >> heard\n";
    fs::permissions(path, fs::perms::owner_all);
    return "\"command:" + path + "\"";
  }
  std::string Heard() const {
    const auto text = ReadFile(directory_.path() + "/heard");
    return text ? *text : "";
  }

  void Play(const std::vector<Sentinel*>& sentinels, double level, int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now_ns_ += kNsPerSecond;
      writer_->AppendReading(1, record::KeyOf(record::Metric::kLoad1), now_ns_, level);
      ASSERT_TRUE(writer_->Flush(now_ns_).ok());
      const auto recording = record::ReadRun(path_);
      ASSERT_TRUE(recording.ok());
      for (Sentinel* sentinel : sentinels) {
        sentinel->Look(*recording, now_ns_);
        sentinel->Deliver(now_ns_);
      }
    }
  }
  static void Settle(Sentinel& sentinel) {
    while (!sentinel.idle()) {
      sentinel.Deliver(0);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_.path() + "/run-1.fbr";
  std::optional<record::RunWriter> writer_;
  std::vector<std::string> said_;
  int64_t now_ns_ = 10 * kNsPerSecond;
  OwnAlerts own_{directory_.path() + "/notes"};
};

TEST_F(SentinelTest, SaysOnceThatItFiresAndOnceThatItIsOver) {
  const auto sentinel = Watch("\"log\", " + Page());
  Play({sentinel.get()}, 9, 20);
  ASSERT_THAT(said_, ElementsAre(HasSubstr("alert 'busy'")));
  Play({sentinel.get()}, 0, 20);
  Settle(*sentinel);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("alert 'busy'"), HasSubstr("alert 'busy' is over")));
  EXPECT_EQ(Heard(), "firing\nresolved\n");
  const auto rows = record::ReadAlerts(path_);
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_TRUE((*rows)[0].resolved_ns);
  EXPECT_THAT((*rows)[0].undelivered, IsEmpty());
}

TEST_F(SentinelTest, ARestartFiresNothingAgainAndStillResolves) {
  auto sentinel = Watch(Page());
  Play({sentinel.get()}, 9, 12);
  Settle(*sentinel);
  sentinel = Watch(Page());
  Play({sentinel.get()}, 9, 12);
  EXPECT_THAT(sentinel->firing(), ::testing::SizeIs(1));
  Play({sentinel.get()}, 0, 20);
  Settle(*sentinel);
  EXPECT_EQ(Heard(), "firing\nresolved\n");
  EXPECT_EQ(record::ReadAlerts(path_)->size(), 1u);
}

TEST_F(SentinelTest, WhatWasNotDeliveredBeforeARestartIsDeliveredAfterIt) {
  std::ofstream(directory_.path() + "/down") << "";
  auto sentinel = Watch(Page(), kPatient);
  Play({sentinel.get()}, 9, 12);
  EXPECT_THAT(sentinel->waiting(), ElementsAre(HasSubstr("/page")));
  sentinel.reset();
  EXPECT_EQ(Heard(), "");
  fs::remove(directory_.path() + "/down");
  sentinel = Watch(Page());
  Play({sentinel.get()}, 9, 1);
  Settle(*sentinel);
  EXPECT_EQ(Heard(), "firing\n");
  EXPECT_THAT(sentinel->waiting(), IsEmpty());
}

// A run file comes from anybody, and so does the history in it.
TEST_F(SentinelTest, WhatTheHistorySaysThatNoWatcherOfOursHasSeenIsSaidToNobody) {
  std::ofstream(directory_.path() + "/down") << "";
  auto sentinel = Watch(Page(), kPatient);
  Play({sentinel.get()}, 9, 12);
  sentinel.reset();
  fs::remove(directory_.path() + "/down");
  ASSERT_FALSE(record::ReadAlerts(path_)->at(0).undelivered.empty());
  own_ = OwnAlerts(directory_.path() + "/notes of somebody else");
  sentinel = Watch("\"log\", " + Page());
  Play({sentinel.get()}, 9, 3);
  EXPECT_THAT(sentinel->firing(), ::testing::SizeIs(1)) << "it is shown, and not fired again";
  EXPECT_THAT(sentinel->waiting(), IsEmpty());
  Play({sentinel.get()}, 0, 20);
  Settle(*sentinel);
  EXPECT_TRUE(record::ReadAlerts(path_)->at(0).resolved_ns);
  EXPECT_EQ(Heard(), "");
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(SentinelTest, ManyUndeliveredAlertsOfAReceivedRunAreNotSent) {
  const auto log = record::AlertLog::Of(path_);
  for (int i = 1; i <= 200; ++i) {
    record::AlertRow row{0, 1, "busy", 1, i, std::nullopt, "wire money", "{}", {}};
    row.undelivered = {"firing 0 command:" + directory_.path() + "/page"};
    ASSERT_TRUE(log->Fire(row).ok());
    row.resolved_ns = i;
    ASSERT_TRUE(log->Resolve(row).ok());
  }
  const auto sentinel = Watch(Page());
  Play({sentinel.get()}, 0, 2);
  Settle(*sentinel);
  EXPECT_EQ(Heard(), "");
}

TEST_F(SentinelTest, NothingIsNotedAnyMoreOnceAnAlertIsOverAndDelivered) {
  const auto sentinel = Watch(Page());
  Play({sentinel.get()}, 9, 12);
  EXPECT_FALSE(fs::is_empty(directory_.path() + "/notes"));
  Play({sentinel.get()}, 0, 20);
  Settle(*sentinel);
  EXPECT_TRUE(fs::is_empty(directory_.path() + "/notes"));
}

TEST_F(SentinelTest, WhatIsBeingSaidAtTheEndIsSaidAndNotAgainByTheNextOne) {
  const std::string page = Page();
  std::ofstream(directory_.path() + "/page", std::ios::app) << "touch said; sleep 0.2\n";
  auto sentinel = Watch(page);
  Play({sentinel.get()}, 9, 12);
  while (!fs::exists(directory_.path() + "/said")) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  sentinel.reset();
  sentinel = Watch(page);
  Play({sentinel.get()}, 9, 1);
  Settle(*sentinel);
  EXPECT_EQ(Heard(), "firing\n");
  EXPECT_THAT(sentinel->waiting(), IsEmpty());
}

TEST_F(SentinelTest, WhatFiresOfAnEarlierStageIsOverWhenTheNextOneIsWatched) {
  auto sentinel = Watch(Page());
  Play({sentinel.get()}, 9, 12);
  Settle(*sentinel);
  sentinel.reset();
  ASSERT_TRUE(writer_->Close(now_ns_, record::StageState::kEnded, 0, false).ok());
  auto next =
      record::RunWriter::Open(path_, {"run-1", "evaluate", {"python"}, "/", {}}, now_ns_, 5 * kNsPerSecond);
  ASSERT_TRUE(next.ok()) << ToString(next.error());
  writer_.emplace(std::move(*next));
  sentinel = Watch(Page());
  Play({sentinel.get()}, 0, 2);
  Settle(*sentinel);
  EXPECT_EQ(Heard(), "firing\nresolved\n");
}

TEST_F(SentinelTest, WhatItCostsGoesOnWhileItFires) {
  const auto rules = ParseRules("[[alert]]\nname = \"gone\"\ndevice = \"lost\"", "test");
  ASSERT_TRUE(rules.ok());
  Sentinel sentinel(
      path_, *rules, [](const std::string&) {}, std::make_shared<Courier>(), own_);
  writer_->AppendMessage({now_ns_, record::Severity::kError, "nvml", "GPU 0 is lost"});
  const auto seconds_lost = [&] { return sentinel.History().at(0)["lost"]["seconds"].get<double>(); };
  Play({&sentinel}, 1, 2);
  const double at_first = seconds_lost();
  Play({&sentinel}, 1, 10);
  EXPECT_DOUBLE_EQ(seconds_lost(), at_first + 10);
}

TEST_F(SentinelTest, TwoThatWatchSayItOnce) {
  const auto one = Watch(Page()), other = Watch(Page());
  Play({one.get(), other.get()}, 9, 12);
  Play({one.get(), other.get()}, 0, 20);
  Settle(*one);
  Settle(*other);
  EXPECT_EQ(Heard(), "firing\nresolved\n");
}

TEST_F(SentinelTest, WithoutAHistoryItIsSaidAllTheSame) {
  const auto sentinel = Watch("\"log\"");
  Play({sentinel.get()}, 9, 2);
  const auto recording = record::ReadRun(path_);
  for (const auto& entry : fs::directory_iterator(directory_.path())) fs::remove(entry);
  for (int i = 0; i < 10; ++i) sentinel->Look(*recording, now_ns_ += kNsPerSecond);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("history of alerts is not kept"), HasSubstr("alert 'busy'")));
}

}  // namespace
}  // namespace fullbore::watch
