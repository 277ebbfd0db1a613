#include "record/snapshot.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/testing/scratch_directory.h"
#include "record/database.h"

namespace fullbore::record {
namespace {

namespace fs = std::filesystem;

// A table of two columns that hold the same number in all rows.
class Writer {
 public:
  explicit Writer(const std::string& path) : database_(Database::OpenForWriting(path).value()) {
    Do("CREATE TABLE pair (a INTEGER, b INTEGER, filling TEXT)");
    for (int row = 0; row < 400; ++row) Do("INSERT INTO pair VALUES (0, 0, hex(zeroblob(1000)))");
  }
  void Do(const char* sql) { ASSERT_TRUE(database_.Execute(sql).ok()) << sql; }
  void CountUp() { Do("UPDATE pair SET a = a + 1, b = b + 1"); }

 private:
  Database database_;
};

int64_t Ask(Database& database, const char* sql) {
  auto statement = database.Prepare(sql);
  if (!statement || !statement->Next()) return -1;
  return statement->Int(0);
}

std::set<std::string> FilesIn(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename());
  return names;
}

class SnapshotTest : public ::testing::Test {
 protected:
  ScratchDirectory directory_;
  const std::string path_ = directory_ / "x.db";
};

TEST_F(SnapshotTest, AFileWithoutALogIsReadInPlace) {
  {
    Writer writer(path_);
    writer.Do("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE;");
  }
  const auto snapshot = Snapshot::Take(path_);
  ASSERT_TRUE(snapshot.ok());
  EXPECT_FALSE(snapshot->is_copy());
  EXPECT_EQ(snapshot->path(), fs::canonical(path_));
}

TEST_F(SnapshotTest, AFileThatIsStillMarkedForALogIsReadWithoutOne) {
  { const Writer writer(path_); }  // the last connection folds the log into the file, and leaves the mark
  ASSERT_EQ(FilesIn(directory_.path()), std::set<std::string>{"x.db"});
  auto database = Database::OpenForReading(path_);
  ASSERT_TRUE(database.ok()) << ToString(database.error());
  EXPECT_EQ(Ask(*database, "SELECT count(*) FROM pair"), 400);
  EXPECT_EQ(FilesIn(directory_.path()), std::set<std::string>{"x.db"});
}

TEST_F(SnapshotTest, TheHolesOfASparseFileTakeNoRoomInItsCopy) {
  Writer writer(path_);
  writer.CountUp();
  const auto real = Snapshot::Take(path_)->bytes();
  fs::resize_file(path_, uint64_t{3} << 40);
  const auto snapshot = Snapshot::Take(path_);
  ASSERT_TRUE(snapshot.ok()) << ToString(snapshot.error());
  ASSERT_TRUE(snapshot->is_copy());
  struct stat copy {};
  ASSERT_EQ(stat(snapshot->path().c_str(), &copy), 0);
  EXPECT_LT(copy.st_blocks * 512, 4 << 20);
  EXPECT_EQ(copy.st_size, off_t{3} << 40);
  EXPECT_LT(snapshot->bytes(), real + (1 << 20)) << "what is read is bounded by what is there";
}

TEST_F(SnapshotTest, AFileWithALogIsReadWithItAndLeftAlone) {
  Writer writer(path_);
  writer.CountUp();
  const auto files = FilesIn(directory_.path());
  auto database = Database::OpenForReading(path_);
  ASSERT_TRUE(database.ok()) << ToString(database.error());
  EXPECT_EQ(Ask(*database, "SELECT max(a) FROM pair"), 1);
  EXPECT_EQ(FilesIn(directory_.path()), files);
}

TEST_F(SnapshotTest, AReaderDoesNotKeepAWriterFromMergingTheLog) {
  Writer writer(path_);
  auto database = Database::OpenForReading(path_);
  ASSERT_TRUE(database.ok());
  ASSERT_EQ(Ask(*database, "SELECT max(a) FROM pair"), 0);
  writer.CountUp();
  writer.Do("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE;");
  EXPECT_EQ(FilesIn(directory_.path()), std::set<std::string>{"x.db"});
  EXPECT_EQ(Ask(*database, "SELECT max(a) FROM pair"), 0);  // as it stood when it was opened
}

TEST_F(SnapshotTest, AFileIsReadThroughALinkWithTheLogBesideTheFile) {
  Writer writer(path_);
  writer.CountUp();
  fs::create_symlink(path_, directory_ / "link.db");
  auto database = Database::OpenForReading(directory_ / "link.db");
  ASSERT_TRUE(database.ok());
  EXPECT_EQ(Ask(*database, "SELECT max(a) FROM pair"), 1);
}

// With a checkpoint, and so a restarted log, after every few changes.
TEST_F(SnapshotTest, EverySnapshotOfAFileBeingWrittenIsConsistent) {
  Writer writer(path_);
  writer.Do("PRAGMA wal_autocheckpoint=300");
  std::atomic<bool> stop = false;
  std::thread counting([&] {
    while (!stop) writer.CountUp();
  });
  int64_t before = 0;
  int read = 0;
  while (read < 60) {
    auto database = Database::OpenForReading(path_);
    if (!database) {  // changes faster than it can be read: no recorder does
      EXPECT_EQ(database.error().code, ErrorCode::kUnavailable) << ToString(database.error());
      continue;
    }
    ++read;
    const int64_t a = Ask(*database, "SELECT max(a) FROM pair");
    EXPECT_GE(a, before);
    before = a;
    EXPECT_EQ(Ask(*database, "SELECT min(a) FROM pair"), a);
    EXPECT_EQ(Ask(*database, "SELECT min(b) FROM pair"), a);
    EXPECT_EQ(Ask(*database, "SELECT count(*) FROM pair"), 400);
  }
  stop = true;
  counting.join();
  EXPECT_GT(before, 0);
}

TEST_F(SnapshotTest, AFileOfAnotherFormatIsNotGivenToSqlite) {
  for (const char* bytes : {"", "{\"traceEvents\": []}", "SQLite format 2"}) {
    const auto snapshot = Snapshot::Take(directory_.Write("foreign", bytes));
    ASSERT_FALSE(snapshot.ok());
    EXPECT_EQ(snapshot.error().code, ErrorCode::kCorrupt);
  }
  EXPECT_EQ(Snapshot::Take(directory_ / "missing").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(Snapshot::Take(directory_.path()).ok());
}

TEST_F(SnapshotTest, AChangedFileHasAnotherState) {
  auto writer = std::make_unique<Writer>(path_);
  const FileState live = FileState::Of(path_);
  EXPECT_EQ(FileState::Of(path_), live);
  writer.reset();
  const FileState folded = FileState::Of(path_);
  EXPECT_NE(folded, live);
  std::ofstream(path_, std::ios::app) << "more";
  EXPECT_NE(FileState::Of(path_), folded);
}

}  // namespace
}  // namespace fullbore::record
