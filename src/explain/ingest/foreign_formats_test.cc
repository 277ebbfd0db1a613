#include "explain/ingest/foreign_formats.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_directory.h"
#include "explain/ingest/ingest.h"
#include "explain/ingest/testing/trace_builder.h"

namespace fullbore::ingest {
namespace {

using ::testing::HasSubstr;

// "what it is | the next step"; empty for what is read or unknown.
std::string Told(std::string_view head, const std::string& path = "x") {
  const auto error = ForeignFormat(path, head);
  return error ? error->text + " | " + error->hint : "";
}

template <size_t kSize>
std::string_view Bytes(const char (&text)[kSize]) {
  return {text, kSize - 1};
}

constexpr std::string_view kTrace = R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": ")";

TEST(ForeignFormatTest, ATraceIsNone) {
  EXPECT_EQ(Told(kTrace), "");
  EXPECT_EQ(Told(kTrace, "x.nsys-rep"), "") << "whatever its name";
  EXPECT_EQ(Told("\xef\xbb\xbf{\"traceEvents\": []}"), "");
  EXPECT_EQ(Told("SQLite format 3", "x.qdrep"), "");
  EXPECT_EQ(Told(""), "");
  EXPECT_EQ(Told("hello"), "");
}

TEST(ForeignFormatTest, APointerOfGitLfsIsFetched) {
  EXPECT_EQ(Told("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "d/t.json.gz"),
            "'d/t.json.gz' is a pointer of Git LFS, not the file itself | "
            "fetch the file: git lfs pull --include 'd/t.json.gz'");
  EXPECT_EQ(Told("version 1 of https://git-lfs.github.com/spec/v1"), "");
}

TEST(ForeignFormatTest, AWebPageIsNoTrace) {
  EXPECT_THAT(Told("<!DOCTYPE html>\n<html><head><title>404"),
              HasSubstr("a web page (HTML), not a trace | "));
  EXPECT_THAT(Told("\n  <HTML>"), HasSubstr("a web page"));
  EXPECT_THAT(Told("<?xml version=\"1.0\"?><Error><Code>AccessDenied"), HasSubstr("an XML document"));
  EXPECT_EQ(Told(R"({"html": "<!doctype html>"})"), "");
}

TEST(ForeignFormatTest, Utf16IsConvertedByTheUser) {
  EXPECT_THAT(Told(Bytes("\xff\xfe{\0\"\0")), HasSubstr("text in UTF-16"));
  EXPECT_THAT(Told(Bytes("\xfe\xff\0{\0\"")), HasSubstr("iconv -f UTF-16 -t UTF-8 'x' > trace.json"));
  EXPECT_THAT(Told(Bytes("[\0\n\0")), HasSubstr("text in UTF-16"));
  EXPECT_EQ(Told(Bytes("{\n\0\0")), "");
}

TEST(ForeignFormatTest, AMemorySnapshotIsNoTraceOfTime) {
  const std::string_view snapshot = Bytes("\x80\x04\x95\x12\0\0\0\0\0\0\0}\x94(\x8c\x08segments\x94]");
  EXPECT_THAT(Told(snapshot), HasSubstr("a memory snapshot of PyTorch (pickle)"));
  EXPECT_THAT(Told(snapshot), HasSubstr("fullbore explain takes one by itself"));
  const std::string other = Told(Bytes("\x80\x04\x95\x12\0\0\0\0\0\0\0}\x94(\x8c\x05model\x94]"));
  EXPECT_THAT(other, HasSubstr("a Python pickle, not a trace"));
  EXPECT_EQ(Told(Bytes("\x80\x09segments")), "");
}

TEST(ForeignFormatTest, JsonOfOtherToolsIsToldByItsFirstMember) {
  EXPECT_THAT(Told(R"({"rocprofiler-sdk-tool": [{"metadata": {)"), HasSubstr("the JSON output of rocprofv3"));
  EXPECT_THAT(Told(R"({ "schema": "1.1.0-chakra.0.0.4", "pid": 1, "nodes": [)"),
              HasSubstr("an execution trace (Chakra)"));
  EXPECT_THAT(Told(R"({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {)"),
              HasSubstr("a profile for speedscope"));
  EXPECT_EQ(Told(R"({"traceEvents": [{"name": "rocprofiler-sdk-tool", "args": {"schema": "chakra"}}]})"), "");
  EXPECT_EQ(Told(R"({"schema": 3, "traceEvents": [{"name": "nodes"}]})"), "");
}

TEST(ForeignFormatTest, ProtocolBuffersAreToldByTheirFirstFields) {
  const std::string_view xplane = Bytes("\x0a\x40\x08\x01\x12\x09/host:CPU\x1a\x10");
  EXPECT_THAT(Told(xplane), HasSubstr("a profile of XLA (XSpace, JAX or TensorFlow)"));
  EXPECT_THAT(Told(Bytes("\x0a\x40\x12\x0d/device:GPU:0\x1a\x10")), HasSubstr("a profile of XLA"));
  const std::string_view perfetto = Bytes("\x0a\x24\x40\xaa\xbb\xcc\x01\x50\x01\x5a\x10");
  EXPECT_THAT(Told(perfetto), HasSubstr("a Perfetto trace (protocol buffers)"));
  EXPECT_THAT(Told(perfetto), HasSubstr("record with torch.profiler"));
  EXPECT_EQ(Told(Bytes("\x0a\x10\x0a\x07pytorch\x12\x03")), "") << "some other list of messages";
  EXPECT_EQ(Told(Bytes("\x08\x07\x12\x07pytorch")), "") << "a model of ONNX";
  EXPECT_EQ(Told(Bytes("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")), "");
  EXPECT_EQ(Told("\n\n\n"), "");
}

TEST(ForeignFormatTest, ReportsOfNsightSystemsAreToldByTheirNames) {
  for (const std::string path : {"runs/report1.nsys-rep", "old.qdrep"}) {
    EXPECT_EQ(Told(Bytes("\x13\x37\0\0"), path),
              "'" + path +
                  "' is a report of Nsight Systems, which only nsys itself reads | "
                  "export it: nsys export --type sqlite '" +
                  path + "'");
  }
  EXPECT_THAT(Told(Bytes("NVR\0\1"), "k.ncu-rep"), HasSubstr("a report of Nsight Compute"));
  EXPECT_THAT(Told("NVRAM"), "");
}

TEST(ForeignFormatTest, OtherPackersAreNamed) {
  EXPECT_THAT(Told("7z\xbc\xaf\x27\x1c"), HasSubstr("packed in a way that is not read | unpack it"));
  EXPECT_EQ(Told("7zip"), "");
}

TEST(ForeignFormatTest, ExplainingOneSaysWhatItIs) {
  const ScratchDirectory dir;
  const std::string page = dir.Write("trace.json.gz", testing::Gzip("<!doctype html><title>404</title>"));
  EXPECT_THAT(ReadTraces({page}).error().text, HasSubstr("is a web page"));
  const std::string trace = dir.Write("real.json", testing::SmallTrainingTrace());
  const auto both = ReadTraces({page, trace});
  ASSERT_TRUE(both.ok()) << "beside a trace it is left out";
  EXPECT_THAT(both->stages[0].messages[0].text, HasSubstr("left out: '" + page + "' is a web page"));
}

TEST(ForeignFormatTest, ADirectoryOfNothingElseSaysWhatItHolds) {
  const ScratchDirectory dir;
  dir.Write("notes.txt", "hello");
  dir.Write("report1.nsys-rep", std::string("\x13\x37\0\0", 4));
  EXPECT_THAT(ReadTraces({dir.path()}).error().hint, HasSubstr("nsys export --type sqlite"));
}

TEST(ForeignFormatTest, OneDeepInADirectoryOfLogsIsNamedIfThereIsNoTrace) {
  const ScratchDirectory dir;
  const std::string bytes = std::string(Bytes("\x0a\x40\x08\x01\x12\x09/host:CPU\x1a\x10"));
  dir.Write("logs/events.out", "hello");
  const std::string profile = dir.Write("logs/plugins/profile/2026_11_21/host.xplane.pb", bytes);
  EXPECT_THAT(ReadTraces({dir.path()}).error().text, HasSubstr("'" + profile + "' is a profile of XLA"));
  dir.Write("logs/plugins/profile/2026_11_21/host.json", testing::SmallTrainingTrace());
  EXPECT_TRUE(ReadTraces({dir.path()}).ok());
}

}  // namespace
}  // namespace fullbore::ingest
