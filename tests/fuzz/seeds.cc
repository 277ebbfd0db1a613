// fuzz_seeds DIRECTORY: small valid inputs from which fuzzing starts, one folder per target.
#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/result.h"
#include "base/testing/source_directory.h"
#include "explain/ingest/testing/trace_builder.h"
#include "explain/memory/testing/made_snapshot.h"
#include "loader/core/source/remote/cache_chunk.h"
#include "loader/core/source/tar_writer.h"
#include "loader/core/source/testing/example_builder.h"
#include "record/channel.h"
#include "record/columns.h"

namespace fullbore::fuzz {
namespace {

namespace fs = std::filesystem;
namespace made = ingest::testing;

void Write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

void WriteTraces(const fs::path& root) {
  const std::string trace = made::SmallTrainingTrace();
  made::TraceBuilder old;
  old.OldNames().Launched("volta_sgemm", 10, 20, 30).Copy("Memcpy DtoH (Device -> Pinned)", 60, 5, 3, 64);
  made::TraceBuilder collectives;
  collectives.Property(R"("baseTimeNanoseconds": 1700000000000000000)").Step(0, 0, 900);
  collectives.Kernel("ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", 100, 50, 7, 20,
                     R"(, "Collective name": "_allgather_base", "In msg nelems": 100, "Out msg nelems": 800,)"
                     R"( "Group size": 8, "dtype": "BFloat16", "Process Group Name": "0")");
  collectives.Python("train.py(8): \\u0073tep\\n", 0, 500);
  Write(root / "kineto/training.json", trace);
  Write(root / "kineto/old_array.json", old.BareArray());
  Write(root / "kineto/collectives.json", collectives.Json());
  made::TraceBuilder halves;
  halves.Raw(
      R"({"ph": "B", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "args": {"correlation": 1}})");
  halves.Raw(R"({"ph": "E", "pid": 0, "tid": 7, "ts": 4})")
      .Raw(R"({"ph": "B", "name": "open", "tid": 1, "ts": 2})");
  halves.Raw(R"({"ph": "X", "cat": "cpu_op", "name": "C:\data\", "pid": 1, "tid": 1, "ts": 1, "dur": 2})");
  halves.Raw(R"({"ph": "M", "pid": 2, "name": "process_name", "args": {"name": "/device:GPU:0"}})");
  Write(root / "kineto/halves.json", "\xef\xbb\xbf" + halves.Json());
  const std::string small = old.Json();
  const std::string tar = made::TarMember("rank0.json", small) + made::TarMember("d/", "", '5') +
                          made::TarMember("rank1.json", trace) + std::string(1024, '\0');
  Write(root / "bytes/plain", small);
  Write(root / "bytes/gzip", made::Gzip(small));
  Write(root / "bytes/gzip_twice", made::Gzip(small) + made::Gzip(small));
  Write(root / "bytes/zstd", made::Zstd(trace));
  Write(root / "bytes/tar", tar);
  Write(root / "bytes/tar_gz", made::Gzip(tar));
  Write(root / "bytes/xz", made::Xz(small));
  Write(root / "bytes/bzip2", made::Bzip2(small));
  Write(root / "bytes/zip", made::Zip({{"rank0.json", small}, {"rank1.json.gz", made::Gzip(small)}}));
  Write(root / "bytes/xplane", std::string("\x0a\x40\x08\x01\x12\x09/host:CPU\x1a\x10", 17));
  Write(root / "bytes/perfetto", std::string("\x0a\x24\x40\xaa\xbb\xcc\x01\x50\x01\x5a\x10", 11));
}

// Small pages, so that most bytes carry something.
constexpr char kExport[] =
    "PRAGMA page_size = 512;"
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1, 'sgemm'), (2, 'cudaLaunchKernel_v7000'), (3, "
    "'ncclDevKernel_AllReduce');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
    "  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 400, 0, 7, 1, 167772160, 1, 1),"
    "  (500, 700, 0, 9, 2, 167772160, 3, 3), (1100, 1400, 0, 7, 3, 167772160, 1, 1);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,"
    "  correlationId INTEGER, nameId INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50, 60, 167772165, 1, 2), (450, 460, 167772165, 2, 2),"
    "  (1050, 1060, 167772165, 3, 2);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
    "  correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 10, 0, 7, 4, 167772160, 64, 1, 0);"
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,"
    "  textId INTEGER);"
    "INSERT INTO NVTX_EVENTS VALUES (0, 990, 59, 'step 0', 167772165, NULL),"
    "  (1000, 1990, 59, 'step 1', 167772165, NULL);";

void WriteExport(const fs::path& path) {
  fs::create_directories(path.parent_path());
  fs::remove(path);
  sqlite3* db = nullptr;
  FB_CHECK(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  FB_CHECK(sqlite3_exec(db, kExport, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

// The golden runs with small pages, so that most bytes carry something.
void WriteRuns(const fs::path& root) {
  fs::create_directories(root / "run");
  for (const auto& golden : fs::directory_iterator(fullbore::testing::SourceDirectory() + "/tests/golden")) {
    if (golden.path().extension() != ".fbr") continue;
    const fs::path small = root / "run" / golden.path().filename();
    fs::copy_file(golden.path(), small, fs::copy_options::overwrite_existing);
    sqlite3* db = nullptr;
    FB_CHECK(sqlite3_open(small.c_str(), &db) == SQLITE_OK);
    FB_CHECK(sqlite3_exec(db, "PRAGMA page_size = 512; VACUUM;", nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(db);
  }
}

// For targets that make choices from their input: any bytes will do.
void WriteChoices(const fs::path& directory) {
  constexpr int kFiles = 40, kBytes = 60;
  std::minstd_rand random(1);
  for (int file = 0; file < kFiles; ++file) {
    std::string choices;
    while (choices.size() < kBytes) choices += static_cast<char>(random() >> 8);
    Write(directory / std::to_string(file), choices);
  }
}

void WriteColumns(const fs::path& root) {
  record::Column full, sparse;
  for (int64_t i = 0; i < 40; ++i) {
    full.values.push_back(i * i * 1'000'003);
    sparse.values.push_back(i % 3 == 0 ? 0 : -i);
    sparse.present.push_back(i % 3 != 0);
  }
  Write(root / "columns/none", record::EncodeColumns({}));
  Write(root / "columns/two", record::EncodeColumns({full, sparse}));
}

void WriteChannel(const fs::path& path) {
  constexpr uint32_t kCapacity = 8;
  const std::string text = "{\"k\": \"hello\", \"pid\": 42}\n{\"k\": \"fact\"";
  record::ChannelHeader header{};
  std::memcpy(header.magic, record::kChannelMagic, sizeof header.magic);
  header.header_bytes = record::kChannelHeaderBytes;
  header.record_bytes = record::kChannelRecordBytes;
  header.capacity = kCapacity;
  std::string ring(record::kChannelHeaderBytes + kCapacity * record::kChannelRecordBytes, '\0');
  std::memcpy(ring.data(), &header, sizeof header);
  for (uint64_t sequence = 3; sequence <= 10; ++sequence) {  // wrapped around once: 3 to 10 are left
    record::ChannelRecord event{};
    event.sequence = sequence;
    std::memcpy(ring.data() + record::kChannelHeaderBytes + (sequence - 1) % kCapacity * sizeof event, &event,
                sizeof event);
  }
  const std::string length = {static_cast<char>(text.size()), '\0'};
  Write(path, length + ring + text);
}

// The loader's corpus of broken and odd files, by file extension.
void CopyCorpus(const fs::path& root) {
  for (const auto& file :
       fs::directory_iterator(fullbore::testing::SourceDirectory() + "/tests/loader/corpus/files")) {
    const std::string ending = file.path().extension();
    const std::string target = ending == ".jpg" ? "jpeg" : ending.substr(1);
    if (target != "jpeg" && target != "png" && target != "webp" && target != "npy") continue;
    fs::create_directories(root / target);
    fs::copy_file(file.path(), root / target / file.path().filename(), fs::copy_options::overwrite_existing);
  }
}

void WriteCgroups(const fs::path& root) {
  Write(root / "cgroup/slurm", "0::/system.slice/slurmstepd.scope/sG0VQ3J3AZ2K00/step_0/slurm\n");
  Write(root / "cgroup/pod",
        "4:memory:/kubepods/pod1f0c42a6-93b1-4c0e-8b52-7a4e0f6f2d11/" + std::string(64, 'a') + "\n0::/\n");
  Write(root / "cgroup/environment", std::string("SLURM_JOB_GPUS=0,2-3\0NVIDIA_VISIBLE_DEVICES=GPU-1", 49));
  Write(root / "cgroup/devices", "c 195:0 rwm\n");
}

// Whether calls may run commands, the length of the pieces, and what the client writes.
std::string McpSession(bool allow_run, const std::vector<std::string>& requests) {
  std::string text = {static_cast<char>(allow_run), '\x40'};
  for (size_t i = 0; i < requests.size(); ++i)
    text += fmt::format(R"({{"jsonrpc":"2.0","id":{},{}}})"
                        "\n",
                        i + 1, requests[i]);
  return text;
}

void WriteMcp(const fs::path& root) {
  const std::string call = R"("method":"tools/call","params":{"name":)",
                    read = R"("method":"resources/read","params":)";
  Write(root / "mcp/session",
        McpSession(false, {R"("method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":)"
                           R"({"elicitation":{}}})",
                           call + R"("diagnose","arguments":{"what":["last"],"sections":["kernels"]}})",
                           call + R"("explain_finding","arguments":{"id":"input-bound"}})",
                           read + R"({"uri":"fullbore://runs"})", read + R"({"uri":"fullbore://runs/last"})",
                           read + R"({"uri":"fullbore://reports/1/result/findings/0-/0/id"})",
                           R"("method":"resources/list")", R"("method":"resources/templates/list")",
                           R"("method":"tools/list")", R"("method":"ping")"}));
  Write(root / "mcp/runs",
        McpSession(true,
                   {call + R"("run","arguments":{"command":"python 'a b.py'","limit":"2m","tags":["a=b"]},)"
                           R"("_meta":{"progressToken":7}})",
                    R"("method":"notifications/cancelled","params":{"requestId":1})",
                    call + R"("compare","arguments":{"command":"a","at":["HEAD"],"whole_runs":true}})",
                    call + R"("tune","arguments":{"command":"a","settings":["num_workers=0,2"]}})",
                    call + R"("diagnose","arguments":{"pid":4711,"seconds":"30s"}})"}));
  Write(root / "mcp/asked", McpSession(false, {call + R"("measure","arguments":{"command":"a"}})"}) +
                                R"({"jsonrpc":"2.0","id":"fullbore-1","result":{"action":"accept","content":)"
                                R"({"allow":true}}})"
                                "\n");
}

void WriteRemote(const fs::path& root) {
  Write(root / "s3_list/page",
        "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><IsTruncated>true</IsTruncated>"
        "<NextContinuationToken>t</NextContinuationToken><Contents><Key>a&amp;&#x1;</Key><Size>12</Size>"
        "<ETag>&quot;e&quot;</ETag></Contents><Contents><Key><![CDATA[b]]></Key></Contents><!-- c -->"
        "</ListBucketResult>");
  Write(root / "s3_list/error", "<Error><Code>SlowDown</Code><Message>m</Message><Region>r</Region></Error>");
  Write(root / "http_headers/part",
        "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\nHTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n"
        "Content-Range: bytes 5-9/20\r\nETag: W/\"e\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
  Write(root / "http_headers/busy",
        "HTTP/1.1 503 x\r\nRetry-After: Sun, 06 Nov 2094 08:49:37 GMT\r\nx-amz-bucket-region: eu-west-1\r\n");
  const std::string data = "some data";
  loader::remote::ChunkTail tail;
  tail.Add({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
  Write(root / "cache/small", data + tail.Finish(loader::remote::ChunkKey(32, 'k')));
  Write(root / "cache/empty", loader::remote::ChunkTail().Finish(loader::remote::ChunkKey(32, 'k')));
}

void WriteContainers(const fs::path& root) {
  fs::create_directories(root / "tar");
  fs::create_directories(root / "tar_index");
  auto writer = loader::TarWriter::Create(root / "tar/two.tar");
  FB_CHECK(writer.ok());
  const std::vector<uint8_t> image(100, 'i'), label = {'7'};
  const loader::TarWriter::Member members[] = {{"jpg", image}, {"cls", label}};
  for (const char* key : {"000", "d/001"}) FB_CHECK(writer->Add(key, members).ok());
  FB_CHECK(writer->Finish().ok());
  fs::rename(root / "tar/two.tar.idx", root / "tar_index/two");
  loader::testing::ExampleBuilder example;
  example.Bytes("image", "\xff\xd8\xff")
      .Integers("label", {-1})
      .Integers("box", {1, 2}, false)
      .Floats("w", {1});
  Write(root / "tfrecord/two", example.Record() + example.Record());
  Write(root / "tfrecord/example", example.Example());
  Write(root / "list/quoted", "path,label,note\r\n\"a, b.jpg\",ape,\"x\n\"\"y\"\"\"\nb.jpg,bee,\n");
  Write(root / "list/words", "a b.jpg 1\nc.jpg\t2\n");
}

}  // namespace
}  // namespace fullbore::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds DIRECTORY\n");
    return 2;
  }
  const std::filesystem::path root = argv[1];
  fullbore::fuzz::WriteTraces(root);
  fullbore::fuzz::WriteExport(root / "nsys/export.sqlite");
  fullbore::fuzz::WriteColumns(root);
  fullbore::fuzz::WriteRuns(root);
  for (const char* target : {"run_rows", "facts", "hdf5"}) fullbore::fuzz::WriteChoices(root / target);
  fullbore::fuzz::WriteChannel(root / "channel/once_around");
  fullbore::fuzz::Write(root / "memory/small", fullbore::memory::MadeSnapshot());
  fullbore::fuzz::CopyCorpus(root);
  fullbore::fuzz::WriteCgroups(root);
  fullbore::fuzz::WriteMcp(root);
  fullbore::fuzz::WriteRemote(root);
  fullbore::fuzz::WriteContainers(root);
  return 0;
}
