#include "explain/ingest/nsys/nsys_reader.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/clock.h"
#include "explain/ingest/nsys/export_file.h"
#include "explain/ingest/span_names.h"
#include "timeline/device/noticed.h"

namespace fullbore::ingest::nsys {

using timeline::DeviceOp;
using timeline::DeviceTrace;
using timeline::HostCall;
using timeline::SpanKind;

namespace {

// A globalTid is the process (globalPid) with the thread in its low 24 bits.
constexpr int64_t ProcessOf(int64_t global_tid) { return global_tid & ~int64_t{0xffffff}; }

constexpr int64_t kPushPopRange = 59;  // ENUM_NSYS_EVENT_TYPE
constexpr int64_t kStartEndRange = 60;

const char* CopyDirection(int64_t kind) {  // ENUM_CUDA_MEMCPY_OPER
  switch (kind) {
    case 1:
    case 11:
      return "Memcpy HtoD";
    case 2:
    case 12:
      return "Memcpy DtoH";
    case 8:
    case 13:
      return "Memcpy DtoD";
    case 10:
      return "Memcpy PtoP";
    default:
      return "Memcpy";
  }
}

const char* MemoryKind(int64_t kind) {  // ENUM_CUDA_MEM_KIND
  constexpr const char* kNames[] = {"Pageable", "Pinned", "Device",  "Array",
                                    "Managed",  "Device", "Managed", "Unknown"};
  return kind >= 0 && kind < 8 ? kNames[kind] : "Unknown";
}

struct Process {
  DeviceTrace trace;
  NamedSteps named_steps;
  std::map<int64_t, uint16_t> threads;
  std::map<std::pair<int64_t, int64_t>, uint16_t> streams;
};

class Reader {
 public:
  explicit Reader(ExportFile file) : file_(std::move(file)) {}

  Result<std::vector<DeviceTrace>> Read(const std::string& path) {
    for (const auto& step :
         {&Reader::ReadKernels, &Reader::ReadGraphs, &Reader::ReadCopies, &Reader::ReadMemsets,
          &Reader::ReadCalls, &Reader::ReadWaits, &Reader::ReadRanges, &Reader::ReadDevices}) {
      if (auto read = (this->*step)(); !read) broken_.push_back(read.error().text);
    }
    std::vector<Process*> used;
    for (auto& [id, process] : processes_) {
      if (process.trace.has_device_activity()) used.push_back(&process);
    }
    if (used.empty()) {
      if (file_.IsRocprofDatabase()) {
        return Error{ErrorCode::kUnsupported,
                     "'" + path + "' is a database of rocprof (rocpd), whose format is not read",
                     "record with torch.profiler, which writes a trace on ROCm, too: "
                     "prof.export_chrome_trace(\"trace.json.gz\")"};
      }
      if (!broken_.empty())
        return Error{ErrorCode::kCorrupt, "cannot read '" + path + "': " + broken_.front(), ""};
      if (!file_.IsExport()) {
        return Error{ErrorCode::kUnsupported,
                     "'" + path + "' is an SQLite file, but not an export of Nsight Systems",
                     "export a report: nsys export --type sqlite REPORT.nsys-rep"};
      }
      return Error{ErrorCode::kNotFound, "'" + path + "' holds no device activity",
                   "export a profile that was recorded with nsys profile --trace cuda"};
    }
    std::stable_sort(used.begin(), used.end(), [](const Process* a, const Process* b) {
      return a->trace.device_ops.begin()->first < b->trace.device_ops.begin()->first;
    });
    std::vector<DeviceTrace> traces;
    for (Process* process : used) traces.push_back(FinishProcess(process, path, used.size()));
    return traces;
  }

 private:
  DeviceTrace FinishProcess(Process* process, const std::string& path, size_t of) {
    DeviceTrace& trace = process->trace;
    std::move(process->named_steps).PutInto(&trace);
    trace.source = "nsys";
    trace.devices = devices_;
    if (of > 1) {
      trace.rank = next_rank_++;
      if (*trace.rank == 0) {
        trace.notes.push_back("'" + path + "' holds " + std::to_string(of) +
                              " processes: they are numbered as ranks in the order of their devices");
      }
    }
    for (const std::string& error : broken_) trace.notes.push_back("'" + path + "' is damaged: " + error);
    trace.Finish();
    return std::move(trace);
  }

  Process& ProcessWith(int64_t global_pid) {
    Process& process = processes_[global_pid];
    process.trace.pid = (global_pid >> 24) & 0xffffff;
    return process;
  }

  static uint16_t ThreadIn(Process* process, int64_t global_tid) {
    constexpr size_t kMaxThreads = 4096;
    const auto next = static_cast<uint16_t>(std::min(process->trace.threads.size(), kMaxThreads - 1));
    const auto [place, added] = process->threads.try_emplace(global_tid, next);
    if (added && next == process->trace.threads.size()) {
      process->trace.threads.push_back(std::to_string(global_tid & 0xffffff));
    }
    return place->second;
  }

  static uint16_t StreamIn(Process* process, int64_t device, int64_t stream) {
    constexpr size_t kMaxStreams = 4096;
    const auto next = static_cast<uint16_t>(std::min(process->trace.streams.size(), kMaxStreams - 1));
    const auto [place, added] = process->streams.try_emplace({device, stream}, next);
    if (added && next == process->trace.streams.size()) {
      process->trace.streams.push_back(std::to_string(device) + "/" + std::to_string(stream));
    }
    return place->second;
  }

  // Whether begin and end are possible; events where they are not are counted.
  static bool TakeTimes(const Rows& row, DeviceTrace* trace, int64_t* begin_ns, int64_t* end_ns) {
    ++trace->events;
    *begin_ns = row.Int(0);
    *end_ns = row.Int(1);
    constexpr int64_t kMaxEventNs = int64_t{24} * 3600 * kNsPerSecond;
    if (row.IsNull(0) || row.IsNull(1) || *begin_ns < 0 || *end_ns < *begin_ns ||
        *end_ns - *begin_ns > kMaxEventNs) {
      ++trace->left_out["events with an impossible begin or end"];
      return false;
    }
    return true;
  }

  // Columns 0 to 5 of every table of device operations: start, end, deviceId, streamId, correlationId,
  // globalPid.
  std::vector<std::string> OpColumns(std::vector<std::string> more) const {
    std::vector<std::string> columns = {"start", "end", "deviceId", "streamId", "correlationId", "globalPid"};
    columns.insert(columns.end(), more.begin(), more.end());
    return columns;
  }

  void AddOp(const Rows& row, std::string_view name, bool kernel, int64_t bytes) {
    Process& process = ProcessWith(row.Int(5));
    DeviceTrace& trace = process.trace;
    DeviceOp op;
    if (!TakeTimes(row, &trace, &op.begin_ns, &op.end_ns)) return;
    op.name = trace.names.Find(name);
    op.lane = kernel ? timeline::ClassifyKernel(name) : timeline::ClassifyCopy(name);
    op.kernel = kernel;
    op.correlation = static_cast<uint64_t>(row.Int(4));
    op.stream = StreamIn(&process, row.Int(2), row.Int(3));
    if (!kernel) {
      op.detail = static_cast<uint32_t>(trace.copy_bytes.size());
      trace.copy_bytes.push_back(bytes);
    }
    ++trace.device_ops[row.Int(2)];
    trace.ops.push_back(op);
  }

  Result<void> ReadKernels() {
    const std::string table = "CUPTI_ACTIVITY_KIND_KERNEL";
    if (!file_.HasTable(table)) return {};
    auto rows = file_.Read(table, OpColumns({"demangledName", "shortName"}));
    if (!rows) return rows.error();
    while (rows->Next()) {
      std::string_view name = file_.StringOf(rows->Int(6));
      if (name.empty()) name = file_.StringOf(rows->Int(7));
      AddOp(*rows, name, true, -1);
    }
    return rows->status();
  }

  Result<void> ReadGraphs() {  // recorded as a whole unless --cuda-graph-trace=node
    const std::string table = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
    if (!file_.HasTable(table)) return {};
    auto rows = file_.Read(table, OpColumns({}));
    if (!rows) return rows.error();
    while (rows->Next()) AddOp(*rows, "(CUDA graph)", true, -1);
    return rows->status();
  }

  Result<void> ReadCopies() {
    const std::string table = "CUPTI_ACTIVITY_KIND_MEMCPY";
    if (!file_.HasTable(table)) return {};
    auto rows = file_.Read(table, OpColumns({"bytes", "copyKind", "srcKind", "dstKind"}));
    if (!rows) return rows.error();
    while (rows->Next()) {
      std::string name = CopyDirection(rows->Int(7));
      if (!rows->IsNull(8)) {
        name += std::string(" (") + MemoryKind(rows->Int(8)) + " -> " + MemoryKind(rows->Int(9)) + ")";
      }
      AddOp(*rows, name, false, rows->Int(6));
    }
    return rows->status();
  }

  Result<void> ReadMemsets() {
    const std::string table = "CUPTI_ACTIVITY_KIND_MEMSET";
    if (!file_.HasTable(table)) return {};
    auto rows = file_.Read(table, OpColumns({"bytes"}));
    if (!rows) return rows.error();
    while (rows->Next()) AddOp(*rows, "Memset (Device)", false, rows->Int(6));
    return rows->status();
  }

  Result<void> ReadCalls() {
    for (const std::string table : {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"}) {
      if (!file_.HasTable(table)) continue;
      auto rows = file_.Read(table, {"start", "end", "globalTid", "correlationId", "nameId"});
      if (!rows) return rows.error();
      while (rows->Next()) {
        Process* process = ProcessOfThread(rows->Int(2));
        if (process == nullptr) continue;
        HostCall call;
        if (!TakeTimes(*rows, &process->trace, &call.begin_ns, &call.end_ns)) continue;
        const std::string_view name = file_.StringOf(rows->Int(4));
        call.kind = timeline::ClassifyCall(name);
        if (timeline::BeginsCapture(name)) ++process->trace.noticed.captures;
        call.name = process->trace.names.Find(name.substr(0, name.find("_v")));
        call.correlation = static_cast<uint64_t>(rows->Int(3));
        call.thread = ThreadIn(process, rows->Int(2));
        process->trace.calls.push_back(call);
      }
      if (auto done = rows->status(); !done) return done;
    }
    return {};
  }

  // An event that a stream waits for is known by its number only, and which call recorded it is not exported unless
  // the profile was made with --cuda-event-trace.
  Result<void> ReadWaits() {
    const std::string table = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
    if (!file_.HasTable(table)) return {};
    auto rows = file_.Read(table, OpColumns({"syncType"}));
    if (!rows) return rows.error();
    while (rows->Next()) {
      const auto found = processes_.find(rows->Int(5));
      if (found == processes_.end()) continue;
      timeline::WaitRecord wait;
      int64_t end_ns = 0;
      if (!TakeTimes(*rows, &found->second.trace, &wait.begin_ns, &end_ns)) continue;
      wait.correlation = static_cast<uint64_t>(rows->Int(4));
      switch (rows->Int(6)) {  // ENUM_CUPTI_SYNC_TYPE
        case 1:
          wait.kind = timeline::WaitKind::kEvent;
          break;
        case 3:
          wait.kind = timeline::WaitKind::kStream;
          wait.stream = StreamIn(&found->second, rows->Int(2), rows->Int(3));
          break;
        case 4:
          wait.kind = timeline::WaitKind::kDevice;
          break;
        default:
          continue;
      }
      found->second.trace.waits.push_back(wait);
    }
    return rows->status();
  }

  // Old exports have no globalPid with their kernels: then there is one process for all.
  Process* ProcessOfThread(int64_t global_tid) {
    if (processes_.size() == 1 && processes_.begin()->first == 0) return &processes_.begin()->second;
    const auto found = processes_.find(ProcessOf(global_tid));
    return found == processes_.end() ? nullptr : &found->second;
  }

  // Sorted here and not by SQLite, which would copy the texts of all rows: in a crafted file, very many rows can
  // share one text.
  Result<void> ReadRanges() {
    if (!file_.HasTable("NVTX_EVENTS")) return {};
    auto rows = file_.Read("NVTX_EVENTS", {"start", "end", "globalTid", "eventType", "text", "textId"});
    if (!rows) return rows.error();
    while (rows->Next()) {
      if (rows->Int(3) != kPushPopRange && rows->Int(3) != kStartEndRange) continue;
      Process* process = ProcessOfThread(rows->Int(2));
      if (process == nullptr || rows->IsNull(1)) continue;
      TakeRange(*rows, rows->IsNull(4) ? file_.StringOf(rows->Int(5)) : rows->TextView(4), process);
    }
    for (auto& [id, process] : processes_) OrderRanges(&process);
    return rows->status();
  }

  // torch.autograd.profiler.emit_nvtx writes operators as "aten::copy_, op_id = 991065".
  static void TakeRange(const Rows& row, std::string_view text, Process* process) {
    DeviceTrace& trace = process->trace;
    int64_t begin = 0;
    int64_t end = 0;
    if (!TakeTimes(row, &trace, &begin, &end)) return;
    const std::string_view name = text.substr(0, text.find(", "));
    const bool op = name.size() < text.size() || name.starts_with("aten::");
    const uint16_t thread = ThreadIn(process, row.Int(2));
    const SpanKind kind = KindOfName(name, op ? SpanKind::kOp : SpanKind::kAnnotation);
    if (kind == SpanKind::kAnnotation) process->named_steps.Offer(name, begin, end, thread);
    trace.spans.push_back({begin, end, trace.names.Find(name), thread, kind});
  }

  static void OrderRanges(Process* process) {
    DeviceTrace& trace = process->trace;
    std::stable_sort(trace.spans.begin(), trace.spans.end(),
                     [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    for (const auto& span : trace.spans) {
      const std::string_view name = trace.names[span.name];
      if (span.kind == SpanKind::kCollectiveCall && name.find(':') != std::string_view::npos) {
        const auto kind = trace.names.Find(name.substr(name.find(':') + 1));
        trace.collective_calls.push_back({span.begin_ns, span.end_ns, span.thread, {kind, 0, -1, -1}});
      }
    }
  }

  Result<void> ReadDevices() {
    const std::string table = "TARGET_INFO_GPU";
    if (!file_.HasTable(table)) return {};
    auto rows = file_.Read(table, {"id", "name"}, "ORDER BY id");
    if (!rows) return rows.error();
    while (rows->Next()) devices_.emplace_back(rows->Text(1));
    return rows->status();
  }

  ExportFile file_;
  std::map<int64_t, Process> processes_;  // by globalPid
  std::vector<std::string> devices_;
  std::vector<std::string> broken_;
  int next_rank_ = 0;
};

}  // namespace

Result<std::vector<DeviceTrace>> ReadNsys(const std::string& path) {
  auto file = ExportFile::Open(path);
  if (!file) return file.error();
  return Reader(std::move(*file)).Read(path);
}

}  // namespace fullbore::ingest::nsys
