#include "explain/ingest/testing/trace_builder.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/result.h"

namespace fullbore::ingest::testing {

namespace {

constexpr size_t kTarBlock = 512;

std::string Archive(int format, int filter, const std::vector<std::pair<std::string, std::string>>& members) {
  size_t room = size_t{64} * 1024;
  for (const auto& [name, contents] : members) room += 2 * (name.size() + contents.size());
  std::string out(room, '\0');
  size_t size = 0;
  archive* writer = archive_write_new();
  archive_write_set_format(writer, format);
  archive_write_add_filter(writer, filter);
  archive_write_set_bytes_in_last_block(writer, 1);
  FB_CHECK(archive_write_open_memory(writer, out.data(), out.size(), &size) == ARCHIVE_OK);
  for (const auto& [name, contents] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<la_int64_t>(contents.size()));
    FB_CHECK(archive_write_header(writer, entry) == ARCHIVE_OK);
    FB_CHECK(archive_write_data(writer, contents.data(), contents.size()) ==
             static_cast<la_ssize_t>(contents.size()));
    archive_entry_free(entry);
  }
  FB_CHECK(archive_write_close(writer) == ARCHIVE_OK);
  archive_write_free(writer);
  out.resize(size);
  return out;
}

}  // namespace

TraceBuilder& TraceBuilder::OldNames() {
  old_names_ = true;
  return *this;
}

TraceBuilder& TraceBuilder::Event(const char* category, const std::string& name, const std::string& pid,
                                  int tid, double begin, double duration, const std::string& args) {
  return Raw(fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, "args": {}}})",
      category, name, pid, tid, begin, duration, args));
}

TraceBuilder& TraceBuilder::Raw(const std::string& event) {
  events_ += (events_.empty() ? "\n  " : ",\n  ") + event;
  return *this;
}

TraceBuilder& TraceBuilder::Kernel(const std::string& name, double begin, double duration, int correlation,
                                   int stream, const std::string& more_args) {
  return Event(
      old_names_ ? "Kernel" : "kernel", name, "0", stream, begin, duration,
      fmt::format(R"({{"device": 0, "context": 1, "stream": {}, "correlation": {}, "grid": [1, 1, 1]{}}})",
                  stream, correlation, more_args));
}

TraceBuilder& TraceBuilder::Copy(const std::string& name, double begin, double duration, int correlation,
                                 int64_t bytes) {
  const bool set = name.find("emset") != std::string::npos;
  const char* category = old_names_ ? (set ? "Memset" : "Memcpy") : (set ? "gpu_memset" : "gpu_memcpy");
  return Event(
      category, name, "0", 7, begin, duration,
      fmt::format(R"({{"device": 0, "stream": 7, "correlation": {}, "bytes": {}}})", correlation, bytes));
}

TraceBuilder& TraceBuilder::Call(const std::string& name, double begin, double duration, int correlation,
                                 int thread) {
  return Event(old_names_ ? "Runtime" : "cuda_runtime", name, "4242", thread, begin, duration,
               fmt::format(R"({{"cbid": 211, "correlation": {}}})", correlation));
}

TraceBuilder& TraceBuilder::Op(const std::string& name, double begin, double duration, int thread) {
  return Event(old_names_ ? "Operator" : "cpu_op", name, "4242", thread, begin, duration,
               R"({"External id": 1, "Input Dims": [[1, 2], []], "Call stack": "a.py(1): f;b.py(2): g"})");
}

TraceBuilder& TraceBuilder::Shaped(const std::string& name, double begin, double duration,
                                   const std::string& dims, const std::string& types,
                                   const std::string& concretes, int thread) {
  return Event(
      old_names_ ? "Operator" : "cpu_op", name, "4242", thread, begin, duration,
      fmt::format(R"({{"External id": 1, "Concrete Inputs": {}, "Input type": {}, "Input Dims": {}}})",
                  concretes, types, dims));
}

TraceBuilder& TraceBuilder::Annotation(const std::string& name, double begin, double duration, int thread,
                                       const std::string& args) {
  return Event(old_names_ ? "Operator" : "user_annotation", name, "4242", thread, begin, duration, args);
}

TraceBuilder& TraceBuilder::Python(const std::string& name, double begin, double duration, int thread) {
  return Event("python_function", name, "4242", thread, begin, duration, R"({"Python id": 1})");
}

TraceBuilder& TraceBuilder::Step(int number, double begin, double duration) {
  return Annotation("ProfilerStep#" + std::to_string(number), begin, duration);
}

TraceBuilder& TraceBuilder::Property(const std::string& member) {
  properties_ += "  " + member + ",\n";
  return *this;
}

std::string TraceBuilder::Json() const {
  return "{\n  \"schemaVersion\": 1,\n" + properties_ + "  \"traceEvents\": [" + events_ +
         "\n  ],\n  \"traceName\": \"trace.json\"\n}\n";
}

std::string TraceBuilder::BareArray() const { return "[" + events_ + "]\n"; }

std::string SmallTrainingTrace() {
  TraceBuilder trace;
  trace.Property(R"("distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2})");
  trace.Property(R"("deviceProperties": [{"id": 0, "name": "Test GPU", "computeMajor": 7, "numSms": 80}])");
  for (int step = 0; step < 3; ++step) {
    const double t = 1'000'000.125 + step * 20'000;
    const int id = 1 + step * 10;
    trace.Step(step, t, 19'990).Loader(t + 10, 5'000);
    trace.Op("aten::to", t + 5'020, 500).Call("cudaMemcpyAsync", t + 5'030, 450, id);
    trace.Copy("Memcpy HtoD (Pageable -> Device)", t + 5'060, 400, id, 1 << 20);
    trace.Op("aten::conv2d", t + 5'600, 40);
    trace.Shaped(
        "aten::convolution", t + 5'602, 36, "[[32, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], []]",
        R"(["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar"])",
        R"(["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1"])");
    trace.Launch(t + 5'610, 5, id + 1);
    trace.Kernel("volta_sgemm_128x64_nn", t + 5'620, 3'000, id + 1);
    trace.Op("aten::relu", t + 5'700, 20);
    trace.Shaped("aten::clamp_min", t + 5'702, 15, "[[32, 64, 112, 112], []]", R"(["float", "Scalar"])",
                 R"(["", "0"])");
    trace.Shaped("aten::_foreach_add_", t + 5'703, 1, "[[[64, 3, 7, 7], [64]], []]",
                 R"(["TensorList", "Scalar"])", R"(["", "1"])");
    trace.Launch(t + 5'705, 5, id + 2);
    trace.Kernel("void at::native::vectorized_elementwise_kernel<4, Relu>", t + 8'620, 1'000, id + 2);
    trace.Op("autograd::engine::evaluate_function: ConvolutionBackward0", t + 6'000, 60, 101);
    trace.Shaped(
        "aten::convolution_backward", t + 6'005, 50,
        "[[32, 64, 112, 112], [32, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], [], []]",
        R"(["float", "float", "float", "", "", "", "", "", "", "", ""])",
        R"(["", "", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1", "[False, True, False]"])",
        101);
    trace.Launch(t + 6'010, 5, id + 3, 101)
        .Kernel("cudnn::wgrad_alg0_engine<float>", t + 9'630, 4'000, id + 3);
    trace.Annotation("nccl:all_reduce", t + 6'100, 50, 101,
                     R"({"Input Dims": [[1000]], "Input type": ["float"]})");
    trace.Launch(t + 6'110, 5, id + 4, 101);
    trace.Kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", t + 13'000, 2'000, id + 4, 14);
    trace.Op("aten::item", t + 6'300, 9'000).Call("cudaStreamSynchronize", t + 6'310, 8'950, id + 5);
    trace.Annotation("Optimizer.step#SGD.step", t + 15'400, 200).Launch(t + 15'450, 5, id + 6);
    trace.Kernel("multi_tensor_apply_kernel<SGD>", t + 15'470, 300, id + 6);
    trace.Raw(fmt::format(
        R"({{"ph": "s", "id": {}, "pid": 4242, "tid": 100, "ts": {:.3f}, "cat": "ac2g", "name": "ac2g"}})",
        id + 1, t + 5'610));
    trace.Raw(fmt::format(
        R"({{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 4242, "tid": 100,)"
        R"( "ts": {:.3f}, "args": {{"Device Type": 1, "Device Id": 0, "Total Allocated": 1000,)"
        R"( "Total Reserved": 2000}}}})",
        t + 5'615));
    trace.Raw(fmt::format(
        R"({{"ph": "C", "name": "power", "pid": 0, "ts": {:.3f}, "args": {{"watts": 250.5}}}})", t));
  }
  trace.Raw(
      R"({"name": "process_name", "ph": "M", "ts": 1, "pid": 4242, "tid": 0, "args": {"name": "python"}})");
  return trace.Json();
}

std::string Gzip(const std::string& text) {
  z_stream stream{};
  FB_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  FB_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3);
  FB_CHECK(!ZSTD_isError(size));
  out.resize(size);
  return out;
}

std::string Xz(const std::string& text) {
  return Archive(ARCHIVE_FORMAT_RAW, ARCHIVE_FILTER_XZ, {{"text", text}});
}

std::string Bzip2(const std::string& text) {
  return Archive(ARCHIVE_FORMAT_RAW, ARCHIVE_FILTER_BZIP2, {{"text", text}});
}

std::string Zip(const std::vector<std::pair<std::string, std::string>>& members) {
  return Archive(ARCHIVE_FORMAT_ZIP, ARCHIVE_FILTER_NONE, members);
}

std::string TarHeader(const std::string& name, int64_t bytes, char type) {
  std::string header(kTarBlock, '\0');
  header.replace(0, name.size(), name);
  const std::string size = fmt::format("{:011o}", bytes);
  header.replace(100, 7, "0000644");
  header.replace(124, size.size(), size);
  header.replace(148, 8, 8, ' ');  // the checksum counts as blanks
  header[156] = type;
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  header.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  return header;
}

std::string TarMember(const std::string& name, const std::string& contents, char type) {
  const std::string padding((kTarBlock - contents.size() % kTarBlock) % kTarBlock, '\0');
  return TarHeader(name, static_cast<int64_t>(contents.size()), type) + contents + padding;
}

}  // namespace fullbore::ingest::testing
