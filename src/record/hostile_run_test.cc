// Run files as an attacker might craft them: they are read within limits or
// refused, and no code of theirs runs.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <zstd.h>

#include <filesystem>

#include "base/testing/scratch_directory.h"
#include "record/columns.h"
#include "record/json_text.h"
#include "record/limits.h"
#include "record/run_reader.h"
#include "record/run_writer.h"
#include "record/sketch.h"
#include "record/step_codec.h"

namespace fullbore::record {
namespace {

namespace fs = std::filesystem;

class HostileRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = RunWriter::Open(path_, {"run-1", "train", {"python"}, "/", {}}, 1000, 5000);
    ASSERT_TRUE(writer.ok());
    RankInfo rank;
    rank.loaders.emplace_back().num_workers = 2;
    writer->PutRank(rank);
    Step step;
    step.end_ns = 2000;
    step.wall_ns = step.share_ns[0] = 100;
    writer->AppendStep(0, step);
    writer->AppendReading(0, {"load1", "count", {}, 0}, 2000, 1);
    ASSERT_TRUE(writer->Close(3000, StageState::kEnded, 0, false).ok());
  }

  // Changes the finished run with everything that SQLite can do allowed.
  void Craft(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    char* error = nullptr;
    ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(db);
  }

  void CraftBlob(const std::string& sql, const std::string& blob) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr), SQLITE_OK);
    sqlite3_bind_blob64(statement, 1, blob.data(), blob.size(), SQLITE_STATIC);
    ASSERT_EQ(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
    sqlite3_close(db);
  }

  Recording Read() const { return ReadRun(path_).value(); }

  static bool SaysDamaged(const Recording& run, const std::string& table) {
    for (const Message& message : run.stages.at(0).messages) {
      if (message.source == "reader" && message.text.find(table) != std::string::npos) return true;
    }
    return false;
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_ / "run.fbr";
};

TEST_F(HostileRunTest, FactsThatNoMachineHasAreLeftOutWithANote) {
  for (const char* value : {"1000000000000000", "1e300", "-3", "nan", "inf", "\"4e15\"", "70000"}) {
    Craft("DELETE FROM machine; INSERT INTO machine VALUES ('cores', '" + std::string(value) +
          "'), ('memory_bytes', '68719476736'), ('cpu_model', 'c'), ('any', '1e19'), ('text', '1e19 x')");
    const Recording run = Read();
    EXPECT_EQ(run.machine, (std::map<std::string, std::string>{
                               {"memory_bytes", "68719476736"}, {"cpu_model", "c"}, {"text", "1e19 x"}}))
        << value;
    ASSERT_FALSE(run.stages[0].messages.empty());
    EXPECT_NE(run.stages[0].messages.back().text.find("incomplete: machine"), std::string::npos);
  }
}

TEST_F(HostileRunTest, FactsThatNoTrainingHasAreLeftOutWithANote) {
  Craft(
      R"(UPDATE rank SET facts = '{"torch_threads": "9999999", "omp_num_threads": "\"8\"", "torch": "\"2.3\"",
           "batch_shape": "[8, 3e30, 4]", "growing": "{\"a\": [1, {\"b\": -1e25}]}", "world_size": "8"}')");
  const Recording run = Read();
  EXPECT_EQ(run.stages[0].ranks[0].facts,
            (std::map<std::string, std::string>{
                {"omp_num_threads", "\"8\""}, {"torch", "\"2.3\""}, {"world_size", "8"}}));
  ASSERT_FALSE(run.stages[0].messages.empty());
  EXPECT_NE(run.stages[0].messages.back().text.find("incomplete: rank"), std::string::npos);
}

TEST_F(HostileRunTest, AnUntouchedRunIsReadWithoutComplaint) {
  const Recording run = Read();
  EXPECT_TRUE(run.stages.at(0).messages.empty());
  EXPECT_EQ(run.stages[0].ranks.at(0).loaders.at(0).num_workers, 2);
}

TEST_F(HostileRunTest, AViewInPlaceOfATableIsNotRead) {
  Craft(
      "DROP TABLE message; CREATE VIEW message (stage, t_ns, severity, source, text) AS "
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 1, i, 0, 'x', 'y' FROM n;");
  const Recording run = Read();
  EXPECT_TRUE(SaysDamaged(run, "message"));
  EXPECT_EQ(run.stages[0].messages.size(), 1u);
  EXPECT_EQ(run.stages[0].ranks.at(0).steps.size(), 1u);
}

TEST_F(HostileRunTest, AVirtualTableInPlaceOfATableIsNotRead) {
  Craft(
      "DROP TABLE tag; CREATE VIRTUAL TABLE tag USING fts5(key, value); INSERT INTO tag VALUES ('a', 'b');");
  const Recording run = Read();
  EXPECT_TRUE(SaysDamaged(run, "tag"));
  EXPECT_TRUE(run.tags.empty());
}

TEST_F(HostileRunTest, ATableWithComputedColumnsIsNotRead) {
  Craft(
      "DROP TABLE machine; CREATE TABLE machine (key TEXT, value TEXT AS (hex(zeroblob(100000000))));"
      "INSERT INTO machine (key) VALUES ('cores');");
  const Recording run = Read();
  EXPECT_TRUE(SaysDamaged(run, "machine"));
  EXPECT_TRUE(run.machine.empty());
}

TEST_F(HostileRunTest, ATriggerDoesNotRunWhenAStageIsAdded) {
  Craft("CREATE TRIGGER t AFTER INSERT ON stage BEGIN DELETE FROM rank; END;");
  auto writer = RunWriter::Open(path_, {"run-1", "again", {"python"}, "/", {}}, 4000, 5000);
  ASSERT_TRUE(writer.ok()) << ToString(writer.error());
  EXPECT_EQ(Read().stages.at(0).ranks.size(), 1u);
}

TEST_F(HostileRunTest, AValueTooLargeForAnyWriterIsNotTakenIntoMemory) {
  Craft("UPDATE rank SET hostname = zeroblob(" + std::to_string(kMaxValueBytes + 1) + ")");
  const Recording run = Read();
  EXPECT_TRUE(SaysDamaged(run, "rank"));
}

TEST_F(HostileRunTest, DeeplyNestedJsonIsLeftOut) {
  const std::string deep = std::string(2'000'000, '[');
  Craft("UPDATE stage SET command = '" + deep + "'; UPDATE rank SET facts = '{\"a\": \"b\"}', totals = '" +
        deep + std::string(2'000'000, ']') + "', hot_lines = '" + deep +
        "'; UPDATE loader SET about = '{\"a\":" + deep + "'");
  const Recording run = Read();
  EXPECT_TRUE(run.stages.at(0).command.empty());
  EXPECT_EQ(run.stages[0].ranks.at(0).facts.at("a"), "b");
}

TEST_F(HostileRunTest, AMillionObjectsInAListTakeNoMoreThanTheirRoom) {
  std::string many = "{}";
  for (int i = 1; i < 1'000'000; ++i) many += ",{}";
  Craft("UPDATE rank SET facts = '{\"a\": \"b\"}', totals = '{\"x\": [" + many + "]}'");
  EXPECT_EQ(Read().stages.at(0).ranks.at(0).facts.at("a"), "b");
}

TEST_F(HostileRunTest, ImpossibleCountsAreIgnored) {
  Craft(
      "UPDATE loader SET about = '{\"num_workers\": 9000000000000000000, \"batch_size\": -1, \"batches\": "
      "1e300,"
      "\"samples\": 18446744073709551615, \"prefetch_factor\": 3}';"
      "UPDATE rank SET totals = '{\"span_ns\": -5, \"busy_ns\": 7}';");
  const Recording run = Read();
  const RankInfo& rank = run.stages.at(0).ranks.at(0);
  const Loader& loader = rank.loaders.at(0);
  EXPECT_LE(loader.num_workers, kMaxWorkers);
  EXPECT_FALSE(loader.batch_size);
  EXPECT_EQ(loader.batches, 0);
  EXPECT_EQ(loader.samples, 0);
  EXPECT_EQ(loader.prefetch_factor, 3);
  EXPECT_FALSE(rank.span_ns);
  EXPECT_EQ(rank.busy_ns, 7);
}

TEST_F(HostileRunTest, TimesStayWithinARangeWhoseDifferencesFit) {
  Craft(
      "UPDATE stage SET begin_ns = -9223372036854775807, end_ns = 9223372036854775807, exit_status = 1234567;"
      "UPDATE meta SET value = '9223372036854775807' WHERE key = 'wall_offset_ns';");
  const Recording run = Read();
  const Stage& stage = run.stages.at(0);
  EXPECT_TRUE(SaysDamaged(run, "stage"));
  EXPECT_EQ(stage.begin_ns, -kMaxNs);
  EXPECT_EQ(stage.end_ns, kMaxNs);
  EXPECT_EQ(run.wall_offset_ns, kMaxWallOffsetNs);
  EXPECT_EQ(stage.exit_status, 255);
}

TEST_F(HostileRunTest, ImpossibleStepsAreLeftOut) {
  Step step;
  step.wall_ns = -1;
  CraftBlob("UPDATE step SET data = ?", EncodeSteps({step}));
  EXPECT_TRUE(SaysDamaged(Read(), "step"));
  step.wall_ns = 1;
  step.batches = 2'000'000'000;
  CraftBlob("UPDATE step SET data = ?", EncodeSteps({step}));
  const Recording run = Read();
  EXPECT_TRUE(SaysDamaged(run, "step"));
  EXPECT_TRUE(run.stages[0].ranks.at(0).steps.empty());
}

TEST_F(HostileRunTest, StepsOfAnImpossibleTotalDurationAreLeftOut) {
  Step step;
  step.wall_ns = kMaxNs / 2;
  CraftBlob("UPDATE step SET data = ?", EncodeSteps(std::vector<Step>(100, step)));
  const Recording run = Read();
  EXPECT_TRUE(SaysDamaged(run, "step"));
  EXPECT_LE(run.stages[0].ranks.at(0).steps.size(), 2u);
}

TEST_F(HostileRunTest, EndlessRanksAreCutOff) {
  Craft(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
      "INSERT INTO rank SELECT stage, i, 1, '', '', 0, 0, '{}', '{}', '[]' FROM rank, n;"
      "INSERT INTO rank VALUES (1, 9000000000000000000, 1, '', '', 0, 0, '{}', '{}', '[]');");
  const Recording run = Read();
  EXPECT_TRUE(SaysDamaged(run, "rank"));
  EXPECT_EQ(run.stages[0].ranks.size(), kMaxRanks);
}

TEST_F(HostileRunTest, RowsInAnyOrderAreReadInOrderOfTime) {
  Craft(
      "ALTER TABLE message RENAME TO old; CREATE TABLE message (stage, t_ns, severity, source, text);"
      "INSERT INTO message VALUES (1, 2000, 0, 'x', 'second'), (1, 1000, 0, 'x', 'first');");
  const Recording run = Read();
  EXPECT_EQ(run.stages.at(0).messages.at(0).text, "first");
}

// ---- blobs ----

std::string Packed(const std::string& raw) {
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 19));
  return packed;
}

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

TEST(HostileBlockTest, AColumnOfAbsentValuesIsNotAllocatedByItsCountAlone) {
  constexpr uint64_t kRows = uint64_t{1} << 28;  // with 32 MB of presence bits, which compress to nothing
  const std::string blob = Packed(Varint(1) + Varint(kRows) + '\1' + std::string(kRows / 8, '\0'));
  EXPECT_LT(blob.size(), 10'000u);
  EXPECT_FALSE(DecodeColumns(blob).ok());
}

TEST(HostileBlockTest, ManyColumnsOfManyValuesAreRefusedTogether) {
  std::string raw = Varint(1000);
  for (int i = 0; i < 1000; ++i)
    raw += Varint(kMaxRowsOfBlock) + '\1' + std::string(kMaxRowsOfBlock / 8, '\0');
  EXPECT_FALSE(DecodeColumns(Packed(raw)).ok());
}

TEST(HostileBlockTest, ABlockThatAsksForGigabytesIsRefusedByItsHeader) {
  std::string blob = Packed("x");
  // A frame header with eight bytes for the size of the content, which says 16 GB.
  const std::string header{"\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x04\x00\x00\x00", 13};
  EXPECT_FALSE(DecodeColumns(header + blob.substr(6)).ok());
}

TEST(HostileBlockTest, ASketchWhoseCountsDoNotAddUpIsRefused) {
  Column buckets{{1, 2}, {}}, counts{{5, 5}, {}}, totals{{0, 10, 0, 0}, {}};
  EXPECT_TRUE(Sketch::Decode(EncodeColumns({buckets, counts, totals})).ok());
  totals.values[1] = 9;
  EXPECT_FALSE(Sketch::Decode(EncodeColumns({buckets, counts, totals})).ok());
  totals.values = {0, -1, 0, 0};
  EXPECT_FALSE(Sketch::Decode(EncodeColumns({buckets, counts, totals})).ok());
  totals.values = {0, 10, -1, 0};  // the bits of a NaN as the sum
  EXPECT_FALSE(Sketch::Decode(EncodeColumns({buckets, counts, totals})).ok());
}

TEST(JsonTextTest, InvalidJsonIsNull) {
  EXPECT_TRUE(ParseJson("{").is_null());
  EXPECT_TRUE(ParseJson("").is_null());
  EXPECT_EQ(ParseJson("[1]").at(0), 1);
}

}  // namespace
}  // namespace fullbore::record
