#include "explain/ingest/nsys/nsys_reader.h"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <fstream>
#include <random>

#include "base/testing/scratch_directory.h"
#include "explain/ingest/testing/trace_builder.h"
#include "timeline/device/rank.h"

namespace fullbore::ingest::nsys {
namespace {

constexpr char kStrings[] =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1, 'volta_sgemm_128x64_nn'), (2, 'cudaLaunchKernel_v7000'),"
    "  (3, 'cudaStreamSynchronize_v3020'), (4, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'), (5, "
    "'cudaMemcpyAsync_v3020');";

// Two processes, 10 and 11 (pids in bits 24 and up), each with a kernel a step on a device of its own.
std::string Kernels(bool with_pid) {
  std::string sql = std::string(
                        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId "
                        "INTEGER, streamId ") +
                    "INTEGER, correlationId INTEGER, demangledName INTEGER, shortName INTEGER" +
                    (with_pid ? ", globalPid INTEGER" : "") + ");";
  for (int process = 0; process < 2; ++process) {
    for (int i = 0; i < 4; ++i) {
      const int t = i * 1000;
      sql += "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(t + 100) + "," +
             std::to_string(t + 400) + "," + std::to_string(process) + ",7," +
             std::to_string(process * 100 + i + 1) + ",1,1" +
             (with_pid ? "," + std::to_string(int64_t{10 + process} << 24) : "") + ");";
    }
  }
  return sql;
}

std::string Calls() {
  std::string sql =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, "
      "correlationId INTEGER, nameId INTEGER);";
  for (int process = 0; process < 2; ++process) {
    for (int i = 0; i < 4; ++i) {
      sql += "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + std::to_string(i * 1000 + 50) + "," +
             std::to_string(i * 1000 + 60) + "," + std::to_string((int64_t{10 + process} << 24) + 5) + "," +
             std::to_string(process * 100 + i + 1) + ",2);";
    }
  }
  return sql;
}

std::string Ranges() {
  std::string sql =
      "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid "
      "INTEGER, textId INTEGER);";
  for (int i = 0; i < 4; ++i) {
    sql += "INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(i * 1000) + "," +
           std::to_string(i * 1000 + 990) + ",59,'step " + std::to_string(i) + "'," +
           std::to_string((int64_t{10} << 24) + 5) + ",NULL);" + "INSERT INTO NVTX_EVENTS VALUES (" +
           std::to_string(i * 1000 + 40) + "," + std::to_string(i * 1000 + 70) +
           ",59,'aten::mm, op_id = " + std::to_string(i) + "'," + std::to_string((int64_t{10} << 24) + 5) +
           ",NULL);";
  }
  return sql;
}

std::string Database(const ScratchDirectory& dir, const std::string& sql) {
  const std::string path = dir.path() + "/export.sqlite";
  std::remove(path.c_str());
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_close(db);
  return path;
}

TEST(NsysReaderTest, EachProcessWithDeviceActivityIsARank) {
  const ScratchDirectory dir;
  auto traces = ReadNsys(Database(dir, std::string(kStrings) + Kernels(true) + Calls() + Ranges()));
  ASSERT_TRUE(traces.ok()) << ToString(traces.error());
  ASSERT_EQ(traces->size(), 2U);
  const timeline::DeviceTrace& first = (*traces)[0];
  EXPECT_EQ(first.rank, 0);
  EXPECT_EQ(first.pid, 10);
  ASSERT_EQ(first.ops.size(), 4U);
  EXPECT_EQ(first.ops[1].launch_begin_ns, 1050);
  EXPECT_EQ(first.names[first.ops[1].name], "volta_sgemm_128x64_nn");
  EXPECT_EQ(first.steps.size(), 4U);
  EXPECT_EQ(first.steps[3].number, 3);
  EXPECT_EQ((*traces)[1].steps.size(), 0U);
}

TEST(NsysReaderTest, TablesAndColumnsMayBeMissing) {
  const ScratchDirectory dir;
  for (const std::string& sql : {std::string(kStrings) + Kernels(true),
                                 std::string(kStrings) + Kernels(false) + Calls(), Kernels(true)}) {
    auto traces = ReadNsys(Database(dir, sql));
    ASSERT_TRUE(traces.ok()) << ToString(traces.error());
    size_t kernels = 0;
    for (const auto& trace : *traces) kernels += trace.ops.size();
    EXPECT_EQ(kernels, 8U);
  }
}

TEST(NsysReaderTest, SynchronisationsKnowTheirStream) {
  const ScratchDirectory dir;
  auto traces = ReadNsys(Database(
      dir,
      std::string(kStrings) + Kernels(true) + Calls() +
          "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, "
          "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (70, 80, 0, 7, 33, " +
          std::to_string(int64_t{10} << 24) + ", 3), (90, 95, 0, 7, 34, " +
          std::to_string(int64_t{10} << 24) + ", 2);"));
  ASSERT_TRUE(traces.ok()) << ToString(traces.error());
  const auto& waits = (*traces)[0].waits;  // which event a stream waits for is not in the table
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].kind, timeline::WaitKind::kStream);
  EXPECT_EQ(waits[0].correlation, 33U);
  EXPECT_EQ((*traces)[0].streams.at(waits[0].stream), "0/7");
}

TEST(NsysReaderTest, CopiesKnowDirectionAndHostMemory) {
  const ScratchDirectory dir;
  auto traces = ReadNsys(Database(
      dir,
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId "
      "INTEGER, correlationId "
      "INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 10, 0, 7, 1, 0, 64, 1, 0, 2), (20, 30, 0, 7, 2, 0, "
      "64, 2, 2, 1),"
      " (40, 50, 0, 7, 3, 0, 64, 8, 2, 2);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, bytes INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (60, 70, 0, 4);"));
  ASSERT_TRUE(traces.ok()) << ToString(traces.error());
  const auto copies = timeline::SummariseRank(traces->at(0)).info.tables->copies;
  std::vector<std::string> kinds;
  for (const auto& copy : copies) kinds.push_back(copy.kind);
  EXPECT_THAT(kinds, ::testing::ElementsAre("copy_h2d_pageable", "copy_d2h_pinned", "copy_d2d", "memset"));
}

TEST(NsysReaderTest, TimesThatCannotBeAreCounted) {
  const ScratchDirectory dir;
  auto traces = ReadNsys(
      Database(dir, std::string(kStrings) + Kernels(true) +
                        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (500, 100, 0, 7, 9, 1, 1, 167772160),"
                        "(-5, 100, 0, 7, 9, 1, 1, 167772160), (NULL, 1, 0, 7, 9, 1, 1, 167772160),"
                        "('x', 'y', 0, 7, 9, 1, 1, 167772160);"));
  ASSERT_TRUE(traces.ok());
  EXPECT_EQ((*traces)[0].left_out.at("events with an impossible begin or end"), 3);
}

TEST(NsysReaderTest, AnExportWithoutDeviceActivityIsAnErrorThatSaysWhatToDo) {
  const ScratchDirectory dir;
  auto traces = ReadNsys(Database(dir, kStrings));
  ASSERT_FALSE(traces.ok());
  EXPECT_THAT(traces.error().text, ::testing::HasSubstr("export.sqlite"));
  EXPECT_THAT(traces.error().hint, ::testing::HasSubstr("--trace cuda"));
}

TEST(NsysReaderTest, OtherDatabasesAreCalledWhatTheyAre) {
  const ScratchDirectory dir;
  const auto told = [&](const std::string& sql) { return ReadNsys(Database(dir, sql)).error().text; };
  EXPECT_THAT(told("CREATE TABLE rocpd_kernel_dispatch_0 (id INTEGER, start INTEGER, end INTEGER);"),
              ::testing::HasSubstr("is a database of rocprof (rocpd)"));
  EXPECT_THAT(told("CREATE TABLE runs (id INTEGER);"),
              ::testing::HasSubstr("is an SQLite file, but not an export of Nsight Systems"));
  EXPECT_THAT(told(kStrings), ::testing::HasSubstr("holds no device activity"));
}

TEST(NsysReaderTest, ADamagedExportIsReadAsFarAsItGoesOrIsAnError) {
  const ScratchDirectory dir;
  const std::string path = Database(dir, std::string(kStrings) + Kernels(true) + Calls() + Ranges());
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (size_t length = 0; length < whole.size(); length += 1024) {
    auto traces = ReadNsys(dir.Write("cut.sqlite", whole.substr(0, length)));
    if (!traces) {
      EXPECT_THAT(traces.error().text, ::testing::HasSubstr("cut.sqlite"));
    }
  }
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = whole;
    for (int edit = 0; edit < 8; ++edit)
      bytes[100 + random() % (bytes.size() - 100)] = static_cast<char>(random());
    auto traces = ReadNsys(dir.Write("mutated.sqlite", bytes));
    if (!traces) continue;
    for (const auto& trace : *traces) (void)timeline::SummariseRank(trace);
  }
}

}  // namespace
}  // namespace fullbore::ingest::nsys
