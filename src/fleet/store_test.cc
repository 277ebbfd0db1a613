#include "fleet/store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <thread>

#include "base/testing/scratch_directory.h"
#include "record/database.h"

namespace fullbore::fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

RunAccount AnAccount(const std::string& id, int64_t begin_ns = 1000) {
  RunAccount account;
  account.id = id;
  account.path = "/runs/" + id + ".fbr";
  account.user = "anna";
  account.device = "cpu";
  account.devices = 2;
  account.begin_unix_ns = begin_ns;
  account.given_ns = 100;
  account.ended = true;
  account.parts = {{Kind::kWork, "", 60}, {Kind::kWaste, "input-bound", 40}};
  account.advice = {{"input-bound", "too-few-workers", "waits", "num_workers=4", 1.2, 1.5, 1.7, 90}};
  return account;
}

class FleetStoreTest : public ::testing::Test {
 protected:
  ScratchDirectory directory_;
  const std::string path_ = directory_ / "fleet.db";

  int64_t Rows(const std::string& table) {
    auto database = record::Database::OpenForReading(path_);
    auto rows = database->Prepare("SELECT count(*) FROM " + table);
    return rows->Next() ? rows->Int(0) : -1;
  }
};

TEST_F(FleetStoreTest, WhatIsPutIsReadAgain) {
  {
    auto store = Store::Open(path_);
    ASSERT_TRUE(store.ok()) << ToString(store.error());
    ASSERT_TRUE(store->Put(AnAccount("b", 2000), {7, 8}).ok());
    ASSERT_TRUE(store->Put(AnAccount("a"), {5, 6}).ok());
  }
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  auto store = Store::OpenForReading(path_);
  ASSERT_TRUE(store.ok()) << ToString(store.error());
  const auto runs = store->Runs({});
  ASSERT_TRUE(runs.ok());
  ASSERT_THAT(*runs, SizeIs(2));
  const RunAccount& run = (*runs)[0];
  EXPECT_EQ(run.id, "a");
  EXPECT_EQ(run.devices, 2);
  EXPECT_TRUE(run.ended);
  const auto sums = store->SumsOf({});
  ASSERT_TRUE(sums.ok()) << ToString(sums.error());
  ASSERT_THAT(sums->parts, SizeIs(2));
  ASSERT_THAT(sums->fixes, SizeIs(1));
  EXPECT_EQ(sums->fixes[0].change, "num_workers=4");
  EXPECT_EQ(sums->fixes[0].expected_ns, 60);
  EXPECT_EQ(sums->fixes[0].run, "a");
  EXPECT_EQ(sums->fixes[0].title, "waits");
  EXPECT_THAT(*store->Runs({.since_unix_ns = 1500}), SizeIs(1));
  EXPECT_THAT(*store->Runs({.until_unix_ns = 1500}), SizeIs(1));
  EXPECT_TRUE(store->Seen()->contains({"/runs/b.fbr", {7, 8}}));
}

TEST_F(FleetStoreTest, ARunThatIsPutAgainTakesItsOwnPlace) {
  auto store = Store::Open(path_);
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(store->Put(AnAccount("a"), {1, 1}).ok());
  RunAccount grown = AnAccount("a");
  grown.given_ns = 150;
  grown.parts = {{Kind::kNotJudged, "", 150}};
  grown.advice.clear();
  ASSERT_TRUE(store->Put(grown, {2, 2}).ok());
  EXPECT_THAT(*store->Runs({}), SizeIs(1));
  EXPECT_THAT(store->SumsOf({})->parts, SizeIs(1));
  EXPECT_THAT(store->SumsOf({})->fixes, SizeIs(0));
  EXPECT_EQ(Rows("part"), 1);  // what was superseded is not kept
}

// The same file, read by two collectors; and a copy of it elsewhere.
TEST_F(FleetStoreTest, WhatIsPutTwiceIsThereOnce) {
  auto store = Store::Open(path_);
  ASSERT_TRUE(store->Put(AnAccount("a"), {1, 1}).ok());
  ASSERT_TRUE(store->Put(AnAccount("a"), {1, 1}).ok());
  EXPECT_EQ(Rows("run"), 1);
  RunAccount copy = AnAccount("a");
  copy.path = "/backup/a.fbr";
  ASSERT_TRUE(store->Put(copy, {1, 1}).ok());
  EXPECT_THAT(*store->Runs({}), SizeIs(1));
  EXPECT_EQ(store->SumsOf({})->runs[0].given_ns, 100);
}

// On several machines, of which one began earlier than those that were known first.
TEST_F(FleetStoreTest, ARunThatBeganEarlierThanWasKnownIsOne) {
  auto store = Store::Open(path_);
  ASSERT_TRUE(store->Put(AnAccount("a", 2000), {1, 1}).ok());
  ASSERT_TRUE(store->Put(AnAccount("a", 1500), {2, 2}).ok());
  const auto runs = store->Runs({});
  ASSERT_THAT(*runs, SizeIs(1));
  EXPECT_EQ((*runs)[0].begin_unix_ns, 1500);
}

// A backup that somebody put back, or touched, after its run had gone on.
TEST_F(FleetStoreTest, AnOldCopyIsNotTakenForTheRunAsItWentOn) {
  auto store = Store::Open(path_);
  RunAccount copy = AnAccount("a");
  copy.path = "/backup/a.fbr";
  copy.end_unix_ns = 5000;
  RunAccount whole = AnAccount("a");
  whole.end_unix_ns = 9000;
  whole.given_ns = 150;
  ASSERT_TRUE(store->Put(whole, {2, 2}).ok());
  ASSERT_TRUE(store->Put(copy, {1, 7}).ok());
  EXPECT_THAT(*store->Runs({}), SizeIs(1));
  EXPECT_EQ(store->SumsOf({})->runs[0].given_ns, 150);
  EXPECT_THAT(*store->Seen(), SizeIs(2)) << "neither is read again";
}

TEST_F(FleetStoreTest, NobodysRunTakesThePlaceOfAnothersRun) {
  auto store = Store::Open(path_);
  RunAccount forged = AnAccount("a");
  forged.user = "ben";
  forged.end_unix_ns = 9000;
  ASSERT_TRUE(store->Put(AnAccount("a"), {1, 1}).ok());
  ASSERT_TRUE(store->Put(forged, {2, 2}).ok());
  EXPECT_THAT(*store->Runs({.user = "anna"}), SizeIs(1));
}

// A thousand devices spend 292 years in a season, which is all that 64 bits of nanoseconds hold.
TEST_F(FleetStoreTest, SumsBeyond64BitsAreExact) {
  constexpr int64_t kGivenNs = (int64_t{1} << 60) - 7;
  auto store = Store::Open(path_);
  for (int i = 0; i < 40; ++i) {
    RunAccount run = AnAccount("run-" + std::to_string(i));
    run.given_ns = kGivenNs;
    run.parts = {{Kind::kWork, "", kGivenNs}};
    run.advice[0].steady_ns = kGivenNs;
    ASSERT_TRUE(store->Put(run, {1, 1}).ok());
  }
  const auto sums = store->SumsOf({});
  ASSERT_TRUE(sums.ok()) << ToString(sums.error());
  EXPECT_TRUE(sums->runs[0].given_ns == WideNs{40} * kGivenNs);
  EXPECT_TRUE(sums->parts[0].part.device_ns == WideNs{40} * kGivenNs);
  EXPECT_TRUE(sums->fixes[0].expected_ns > INT64_MAX);
}

// A role that may only insert can put anything.
TEST_F(FleetStoreTest, NumbersThatNoRunHasDoNotBreakTheSums) {
  auto store = Store::Open(path_);
  ASSERT_TRUE(store->Put(AnAccount("a"), {1, 1}).ok());
  for (const char* id : {"x", "y"}) {
    for (const int64_t extreme : {INT64_MAX, INT64_MIN + 1}) {
      RunAccount run = AnAccount(fmt::format("{}{}", id, extreme));
      run.given_ns = extreme;
      run.parts = {{Kind::kWaste, "input-bound", extreme}};
      ASSERT_TRUE(store->Put(run, {1, 1}).ok());
    }
  }
  auto database = sql::ConnectFile(path_, sql::Access::kWrite);
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE(
      (*database)->RunScript("INSERT INTO asked SELECT key, 'time', 1e308, 9e999, 1, 0 FROM run;").ok());
  const auto sums = store->SumsOf({});
  ASSERT_TRUE(sums.ok()) << ToString(sums.error());
  EXPECT_EQ(sums->runs[0].given_ns, 100);
  EXPECT_THAT(sums->asked, SizeIs(0));
}

// Of a database that was made by fullbore of version 1 of its tables.
TEST_F(FleetStoreTest, AnEarlierVersionIsBroughtUpToDate) {
  {
    auto old = record::Database::OpenForWriting(path_);
    ASSERT_TRUE(old->Execute(R"sql(
CREATE TABLE fleet (version INTEGER PRIMARY KEY);
CREATE TABLE seen (path TEXT PRIMARY KEY, bytes INTEGER, changed_ns INTEGER) WITHOUT ROWID;
CREATE TABLE run (
  id TEXT, begin_unix_ns INTEGER, path TEXT, user TEXT, job TEXT, account TEXT, partition TEXT, device TEXT,
  devices INTEGER, given_ns INTEGER, ended INTEGER, command TEXT, verdict TEXT, node TEXT, steps_per_s REAL, directory TEXT,
  PRIMARY KEY (id, begin_unix_ns)) WITHOUT ROWID;
CREATE TABLE part (
  id TEXT, begin_unix_ns INTEGER, kind TEXT, cause TEXT, device_ns INTEGER,
  PRIMARY KEY (id, begin_unix_ns, kind, cause)) WITHOUT ROWID;
CREATE TABLE advice (
  id TEXT, begin_unix_ns INTEGER, place INTEGER, finding TEXT, cause TEXT, title TEXT, change TEXT, low REAL,
  expected REAL, high REAL, steady_ns INTEGER, PRIMARY KEY (id, begin_unix_ns, place)) WITHOUT ROWID;
INSERT INTO fleet VALUES (1);
INSERT INTO seen VALUES ('/runs/a.fbr', 5, 6);
INSERT INTO run VALUES ('a', 1000, '/runs/a.fbr', 'anna', '', '', 'gpu', 'cpu', 2, 100, 1, 'train', 'waits', 'n1', 2.5, '/home');
INSERT INTO part VALUES ('a', 1000, 'work', '', 60), ('a', 1000, 'waste', 'input-bound', 40);
INSERT INTO advice VALUES ('a', 1000, 0, 'input-bound', 'too-few', 'waits', 'num_workers=4', 1.2, 1.5, 2, 90);
)sql")
                    .ok());
  }
  EXPECT_THAT(Store::OpenForReading(path_).error().hint, HasSubstr("brings it up to date"));
  auto store = Store::Open(path_);
  ASSERT_TRUE(store.ok()) << ToString(store.error());
  const auto runs = store->Runs({});
  ASSERT_THAT(*runs, SizeIs(1));
  EXPECT_EQ((*runs)[0].partition, "gpu");
  EXPECT_EQ((*runs)[0].steps_per_s, 2.5);
  EXPECT_TRUE(store->Seen()->contains({"/runs/a.fbr", {5, 6}}));
  const auto sums = store->SumsOf({});
  EXPECT_THAT(sums->parts, SizeIs(2));
  EXPECT_EQ(sums->fixes[0].expected_ns, 30);
  EXPECT_TRUE(Store::Open(path_).ok());
  EXPECT_THAT(*Store::OpenForReading(path_)->Runs({}), SizeIs(1));
}

// It had of what a run asked for only what it hardly used.
TEST_F(FleetStoreTest, Version2IsBroughtUpToDate) {
  RunAccount run = AnAccount("a");
  run.use.cores_given = 16;
  run.use.cores_mean = run.use.cores_p95 = 1;
  ASSERT_TRUE(Store::Open(path_)->Put(run, {5, 6}).ok());
  ASSERT_TRUE(record::Database::OpenForWriting(path_)
                  ->Execute("ALTER TABLE asked DROP COLUMN hardly; ALTER TABLE asked DROP COLUMN within;"
                            "UPDATE fleet SET version = 2;")
                  .ok());
  EXPECT_THAT(Store::OpenForReading(path_).error().hint, HasSubstr("brings it up to date"));
  auto store = Store::Open(path_);
  ASSERT_TRUE(store.ok()) << ToString(store.error());
  EXPECT_THAT(store->SumsOf({})->asked, SizeIs(1));
  run.id = "b";
  EXPECT_TRUE(store->Put(run, {7, 8}).ok());
  EXPECT_THAT(*Store::OpenForReading(path_)->Runs({}), SizeIs(2));
}

// A collector that was killed while it made the file, and others that begin at once.
TEST_F(FleetStoreTest, ADatabaseThatWasOnlyBegunIsNew) {
  ASSERT_TRUE(record::Database::OpenForWriting(path_).ok());
  EXPECT_TRUE(Store::Open(path_).ok());
  const std::string fresh = directory_ / "below/it/fleet.db";
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i) all.emplace_back([&] { EXPECT_TRUE(Store::Open(fresh).ok()); });
  for (std::thread& each : all) each.join();
}

TEST_F(FleetStoreTest, TwoCollectorsAtOnceLoseNothing) {
  ASSERT_TRUE(Store::Open(path_).ok());
  const auto put = [&](const std::string& prefix) {
    auto store = Store::Open(path_);
    ASSERT_TRUE(store.ok());
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(store->Put(AnAccount(prefix + std::to_string(i)), {}).ok());
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(store->Put(AnAccount("both" + std::to_string(i)), {}).ok());
  };
  std::thread other(put, "x");
  put("y");
  other.join();
  EXPECT_THAT(*Store::OpenForReading(path_)->Runs({}), SizeIs(150));
}

TEST_F(FleetStoreTest, OtherFilesAreRefusedAndStayAsTheyAre) {
  const std::string text = directory_.Write("notes.txt", "no database");
  EXPECT_FALSE(Store::Open(text).ok());
  EXPECT_FALSE(Store::OpenForReading(text).ok());
  EXPECT_FALSE(Store::OpenForReading(directory_ / "missing.db").ok());
  const std::string other = directory_ / "other.db";
  ASSERT_TRUE(record::Database::OpenForWriting(other)->Execute("CREATE TABLE theirs (x)").ok());
  EXPECT_THAT(Store::Open(other).error().text, HasSubstr("is no fleet database"));
  ASSERT_TRUE(Store::Open(path_).ok());
  ASSERT_TRUE(record::Database::OpenForWriting(path_)->Execute("INSERT INTO fleet VALUES (99)").ok());
  EXPECT_THAT(Store::Open(path_).error().text, HasSubstr("of version 99"));
}

}  // namespace
}  // namespace fullbore::fleet
