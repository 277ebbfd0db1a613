// What is wrong with traces in the world.
#include <gmock/gmock.h>

#include <algorithm>

#include "explain/ingest/kineto/kineto_reader.h"
#include "explain/ingest/testing/trace_builder.h"
#include "timeline/device/rank.h"

namespace fullbore::ingest::kineto {
namespace {

using testing::TraceBuilder;
using timeline::DeviceTrace;

DeviceTrace Read(const std::string& text, ReadOptions options = {}) {
  auto trace = ReadKineto(BytesInMemory(text), "t.json", options);
  EXPECT_TRUE(trace.ok()) << ToString(trace.error());
  return trace.ok() ? std::move(*trace) : DeviceTrace{};
}

Error ReadError(const std::string& text) {
  auto trace = ReadKineto(BytesInMemory(text), "t.json");
  EXPECT_FALSE(trace.ok());
  return trace.ok() ? Error{} : trace.error();
}

TEST(KinetoReaderBrokenTest, ControlCharactersAndBadUtf8InNamesPass) {
  const DeviceTrace trace =
      Read(TraceBuilder().Kernel("bad\x01\x7f\xff name\n", 1, 2, 1).Kernel("good", 5, 1, 2).Json());
  ASSERT_EQ(trace.ops.size(), 2U);
  EXPECT_EQ(trace.names[trace.ops[0].name], "bad \x7f\ufffd name ");
}

TEST(KinetoReaderBrokenTest, TimesThatCannotBeAreLeftOutAndCounted) {
  const DeviceTrace trace =
      Read(TraceBuilder()
               .Kernel("good", 1e15, 10, 1)
               .Kernel("negative", 1e15, -5, 2)
               .Kernel("absurd", 1e15, 1e14, 3)
               .Kernel("at zero", 0, 10, 4)
               .Kernel("jump", 1e15 + 1e11 * 2, 10, 5)
               .Raw(R"({"ph": "X", "cat": "kernel", "name": "no time", "args": {}})")
               .Raw(R"({"ph": "X", "cat": "kernel", "name": "k", "ts": "x", "dur": 1})")
               .Raw(R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1e30, "dur": 1})")
               .Json());
  ASSERT_EQ(trace.ops.size(), 1U);
  EXPECT_EQ(trace.names[trace.ops[0].name], "good");
  int64_t left_out = 0;
  for (const auto& [what, count] : trace.left_out) {
    if (what.find("(kept") == std::string::npos) left_out += count;
  }
  EXPECT_EQ(left_out, 7);
}

TEST(KinetoReaderBrokenTest, KernelsWithoutLengthCountButTakeNoTime) {
  const auto result =
      timeline::SummariseRank(Read(TraceBuilder().Kernel("a", 10, 0, 1).Kernel("b", 20, 5, 2).Json()));
  EXPECT_EQ(result.info.kernels, 2);
  EXPECT_EQ(result.info.busy_ns, 5'000);
  EXPECT_EQ(result.info.span_ns, 15'000);
}

TEST(KinetoReaderBrokenTest, OverlapOnOneStreamCountsOnce) {
  const auto result =
      timeline::SummariseRank(Read(TraceBuilder().Kernel("a", 0, 10, 1).Kernel("b", 5, 10, 2).Json()));
  EXPECT_EQ(result.info.busy_ns, 15'000);
}

TEST(KinetoReaderBrokenTest, MissingCorrelationIdsAreSaid) {
  const DeviceTrace trace = Read(TraceBuilder().Kernel("a", 0, 10, 0).Kernel("b", 20, 10, 0).Json());
  const auto result = timeline::SummariseRank(trace);
  EXPECT_EQ(result.info.busy_ns, 20'000);
  EXPECT_THAT(result.notes,
              ::testing::Contains(::testing::HasSubstr("2 device operations without a correlation id")));
}

TEST(KinetoReaderBrokenTest, AnEmptyTraceIsATraceWithoutEvents) {
  EXPECT_EQ(Read("{\"traceEvents\": []}").events, 0);
  EXPECT_EQ(Read("[]").events, 0);
}

TEST(KinetoReaderBrokenTest, WhatIsNoTraceIsAnErrorThatNamesTheFile) {
  for (const char* text :
       {"", "hello", "{}", "{\"a\": 1}", "{\"traceEvents\": 5}", "{", "[1", "\x1f\x8b broken"}) {
    const Error error = ReadError(text);
    EXPECT_EQ(error.code, ErrorCode::kCorrupt) << text;
    EXPECT_THAT(error.text, ::testing::HasSubstr("'t.json'")) << text;
  }
  EXPECT_THAT(ReadError("{\"a\": [1, 2").text, ::testing::HasSubstr("byte"));
}

TEST(KinetoReaderBrokenTest, ThingsThatAreNoEventsAreCounted) {
  const DeviceTrace trace =
      Read(R"({"traceEvents": [1, "x", {"ph": "X" "cat"}, [2], {"ph": "X", "cat": "kernel",)"
           R"( "name": "k", "ts": 1, "dur": 2, "args": {"correlation": 1}}]})");
  EXPECT_EQ(trace.ops.size(), 1U);
  EXPECT_EQ(trace.left_out.at("unreadable events"), 4);
}

// PyTorch before 2.2 writes names as they are: of directories on Windows, of source lines with quotes.
TEST(KinetoReaderBrokenTest, NamesWithUnescapedQuotesAndBackslashesAreRead) {
  for (const std::string name :
       {R"(C:\data\)", R"(print("hi"))", R"(say "hi)", R"(a, "b", c\)", R"("\)", R"(x = {"a": 1})"}) {
    const std::string event = R"({"ph": "X", "cat": "cpu_op", "name": ")" + name +
                              R"(", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {}})";
    const std::string in_args =
        R"({"ph": "X", "cat": "cpu_op", "name": "n", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {"Call stack": ")" +
        name + R"(", "x": 1}})";
    for (const std::string& damaged : {event, in_args}) {
      const DeviceTrace trace =
          Read(TraceBuilder().Kernel("a", 1, 2, 1).Raw(damaged).Kernel("b", 5, 2, 2).Json());
      EXPECT_EQ(trace.ops.size(), 2U) << damaged;
      EXPECT_FALSE(trace.noticed.breaks_off_at.has_value()) << damaged;
      EXPECT_EQ(trace.spans.size() + static_cast<size_t>(trace.noticed.left_out), 1U) << damaged;
    }
  }
  const DeviceTrace trace = Read(
      R"([{"ph": "X", "cat": "cpu_op", "name": "C:\data\", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {}}])");
  ASSERT_EQ(trace.spans.size(), 1U);
  EXPECT_EQ(trace.left_out.size(), 0U);
}

TEST(KinetoReaderBrokenTest, ADamagedEventCostsNoOther) {
  const std::string kernels = TraceBuilder().Kernel("a", 1, 2, 1).Kernel("b", 5, 2, 2).Json();
  for (const std::string damaged : {R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1 "dur" 2})",
                                    R"({"ph": "X", "name": "open, "cat": 1, "ts": {})", R"({"ts": 1}})",
                                    R"({"args": {"a": [1, 2}, "b": "})"}) {
    std::string text = kernels;
    text.insert(text.rfind("{\"ph\""), damaged + ",\n");
    const DeviceTrace trace = Read(text);
    EXPECT_EQ(trace.ops.size(), 2U) << damaged;
    EXPECT_EQ(trace.noticed.left_out, 1) << damaged;
  }
}

TEST(KinetoReaderBrokenTest, WhereATraceBreaksOffIsNoticed) {
  std::string text = TraceBuilder().Kernel("a", 1, 2, 1).Kernel("b", 5, 2, 2).Json();
  EXPECT_EQ(Read(text).noticed.breaks_off_at, std::nullopt);
  EXPECT_EQ(Read(text + "\n").noticed.breaks_off_at, std::nullopt);
  text.resize(text.rfind("{\"ph\"") + 20);
  const DeviceTrace trace = Read(text);
  EXPECT_EQ(trace.noticed.breaks_off_at, static_cast<int64_t>(text.size()));
  EXPECT_THAT(trace.notes.at(0), ::testing::HasSubstr("at byte " + std::to_string(text.size())));
}

TEST(KinetoReaderBrokenTest, WhatIsLeftOutIsNoticed) {
  EXPECT_EQ(Read(TraceBuilder().Kernel("a", 1, 2, 1).Kernel("b", 5, -2, 2).Raw("7").Json()).noticed.left_out,
            2);
  EXPECT_EQ(Read(TraceBuilder().Kernel("a", 1, 2, 1).Json()).noticed.left_out, 0);
}

// At every kilobyte (here: every 97 bytes, for the trace is small): as far as it goes, or an error with the
// byte.
TEST(KinetoReaderBrokenTest, ATraceCutAnywhereIsReadAsFarAsItGoes) {
  const std::string text = testing::SmallTrainingTrace();
  const int64_t all = Read(text).events;
  for (size_t length = 0; length < text.rfind(']'); length += 97) {
    auto trace = ReadKineto(BytesInMemory(std::string_view(text).substr(0, length)), "t.json");
    if (!trace) {
      EXPECT_THAT(trace.error().text, ::testing::HasSubstr("'t.json'"));
      EXPECT_LT(length, 600U) << "events had been read, and were thrown away";
      continue;
    }
    EXPECT_LT(trace->events, all);
    EXPECT_THAT(trace->notes, ::testing::Contains(::testing::HasSubstr("at byte")));
  }
}

TEST(KinetoReaderBrokenTest, AGzipFileCutAnywhereIsReadAsFarAsItGoes) {
  for (const bool zstd : {false, true}) {
    const std::string text =
        zstd ? testing::Zstd(testing::SmallTrainingTrace()) : testing::Gzip(testing::SmallTrainingTrace());
    for (size_t length = 0; length < text.size(); length += 13) {
      auto trace = ReadKineto(BytesInMemory(std::string_view(text).substr(0, length)), "t.json.gz");
      if (!trace) {
        EXPECT_THAT(trace.error().text, ::testing::HasSubstr("'t.json.gz'"));
      } else if (trace->events < 60) {
        EXPECT_THAT(trace->notes, ::testing::Contains(::testing::HasSubstr("byte"))) << length;
      }
    }
  }
}

TEST(KinetoReaderBrokenTest, AnEventLargerThanTheWindowIsRead) {
  const std::string text =
      TraceBuilder()
          .Raw(
              R"({"ph": "X", "cat": "cpu_op", "name": "aten::big", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {"Call stack": ")" +
              std::string(3 << 20, 's') + "\"}}")
          .Kernel("k", 10, 1, 1)
          .Json();
  const DeviceTrace trace = Read(text);
  EXPECT_EQ(trace.spans.size(), 1U);
  EXPECT_EQ(trace.ops.size(), 1U);
}

}  // namespace
}  // namespace fullbore::ingest::kineto
