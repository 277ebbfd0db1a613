#include "report/export/perfetto.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "explain/analyze/critical_path.h"
#include "timeline/device/shares.h"

namespace fullbore::exporting {

using timeline::DeviceOp;

namespace {

// Process ids in the file: 1 is for findings, then three per rank, in the order in which viewers show them.
constexpr int kFindingsPid = 1;
int SharesPid(int rank) { return 10 * (rank + 1); }
int DevicePid(int rank) { return 10 * (rank + 1) + 1; }
int HostPid(int rank) { return 10 * (rank + 1) + 2; }

std::string Quoted(std::string_view text) {
  return PrintableJson(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

const char* SeverityOf(diagnose::Severity severity) {
  return severity == diagnose::Severity::kCritical  ? "critical"
         : severity == diagnose::Severity::kWarning ? "warning"
                                                    : "info";
}

}  // namespace

std::string PerfettoFile::Micros(int64_t ns) const {
  const int64_t since = ns - window_.origin_ns;
  return fmt::format("{}{}.{:03}", since < 0 ? "-" : "", std::abs(since) / 1000, std::abs(since) % 1000);
}

void PerfettoFile::Event(const std::string& json) {
  text_ += text_.empty() ? "" : ",\n";
  text_ += json;
}

std::string PerfettoFile::StepName(const record::Step& step, const std::vector<int64_t>& numbers) {
  const auto index = static_cast<size_t>(step.index);
  return "step " + std::to_string(index < numbers.size() ? numbers[index] : step.index);
}

int PerfettoFile::NewTrack(int pid, const std::string& process, const std::string& thread) {
  const int tid =
      ++tracks_;  // unique in the file: viewers mix up threads with the same id, even of different processes
  Event(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", pid,
                    Quoted(process)));
  Event(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", pid,
                    pid));
  Event(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", pid, tid,
                    Quoted(thread)));
  Event(fmt::format(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
                    pid, tid, tid));
  return tid;
}

void PerfettoFile::Slice(int pid, int tid, const std::string& name, int64_t begin_ns, int64_t end_ns,
                         const std::string& args) {
  if (!Touches(begin_ns, end_ns)) return;
  const int64_t begin = std::max(begin_ns, window_.begin_ns);
  const int64_t end = std::min(end_ns, window_.end_ns);
  std::string all = args;
  if (begin != begin_ns || end != end_ns) {
    all += fmt::format(R"({}"cut at the window, whole duration in us":{})", all.empty() ? "" : ",",
                       static_cast<double>(end_ns - begin_ns) / 1e3);
  }
  Event(fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{},"dur":{}.{:03}{}}})", Quoted(name), pid,
                    tid, Micros(begin), (end - begin) / 1000, (end - begin) % 1000,
                    all.empty() ? "" : ",\"args\":{" + all + "}"));
  ++events_;
}

void PerfettoFile::AddFindings(const diagnose::Diagnosis& diagnosis) {
  for (const diagnose::Finding& finding : diagnosis.findings) {
    const int tid = NewTrack(kFindingsPid, "fullbore", "finding: " + finding.id);
    std::string args = fmt::format(R"("title":{},"severity":"{}","share of the step":{:.4f})",
                                   Quoted(finding.title), SeverityOf(finding.severity), finding.share);
    if (!finding.fix.empty()) args += ",\"fix\":" + Quoted(finding.fix.front());
    bool placed = false;
    for (const diagnose::Evidence& evidence : finding.evidence) {
      args += fmt::format(R"(,{}:{})", Quoted(evidence.what + " (" + evidence.unit + ")"), evidence.value);
    }
    for (const diagnose::Evidence& evidence : finding.evidence) {
      if (!evidence.begin_ns || !evidence.end_ns) continue;
      placed = placed || Touches(*evidence.begin_ns, *evidence.end_ns);
      Slice(kFindingsPid, tid, finding.id + ": " + evidence.what, *evidence.begin_ns, *evidence.end_ns, args);
    }
    if (!placed) Slice(kFindingsPid, tid, finding.title, window_.begin_ns, window_.end_ns, args);
  }
}

// The tracks of one rank.
class PerfettoFile::RankTracks {
 public:
  RankTracks(PerfettoFile* file, const timeline::DeviceTrace& trace, const record::RankInfo& info,
             int64_t shift_ns)
      : file_(file),
        trace_(trace),
        info_(info),
        shift_ns_(shift_ns),
        name_("rank " + std::to_string(info.rank)),
        rank_(trace) {}

  void AddSteps(const std::vector<int64_t>& numbers) {
    const int tid = file_->NewTrack(SharesPid(info_.rank), "fullbore, " + name_, "steps");
    for (const record::Step& step : info_.steps) {
      const int64_t begin = step.end_ns - step.wall_ns;
      if (!file_->Touches(begin, step.end_ns)) continue;
      std::string shares;
      for (size_t i = 0; i < record::kShareCount; ++i) {
        if (step.share_ns[i] == 0) continue;
        shares += fmt::format(
            R"({}"{} %":{:.2f})", shares.empty() ? "" : ",", record::Name(static_cast<record::Share>(i)),
            100 * static_cast<double>(step.share_ns[i]) / static_cast<double>(step.wall_ns));
      }
      file_->Slice(SharesPid(info_.rank), tid, StepName(step, numbers), begin, step.end_ns, shares);
      Counter("shares of the step (%)", std::max(begin, file_->window_.begin_ns), shares);
    }
  }

  void AddShares() {
    if (trace_.ops.empty()) return;
    const int tid = file_->NewTrack(SharesPid(info_.rank), "fullbore, " + name_, "where the time goes");
    std::vector<timeline::StepBounds> steps;
    for (const record::Step& step : info_.steps)
      steps.push_back({step.end_ns - step.wall_ns - shift_ns_, step.end_ns - shift_ns_});
    const timeline::StepBounds shown{file_->window_.begin_ns - shift_ns_, file_->window_.end_ns - shift_ns_};
    for (const record::ShareSpan& span :
         timeline::ShareDeviceTime(trace_, rank_.host(), steps, shown).spans) {
      file_->Slice(SharesPid(info_.rank), tid, std::string(record::Name(span.share)),
                   span.begin_ns + shift_ns_, span.end_ns + shift_ns_);
    }
  }

  void AddCriticalPath() {
    if (trace_.ops.empty()) return;
    const int tid = file_->NewTrack(SharesPid(info_.rank), "fullbore, " + name_, "critical path");
    const analyze::CriticalPath path = analyze::FindCriticalPath(rank_);
    for (const analyze::PathPiece& piece : path.pieces) {
      std::string args;
      if (piece.name != 0) args = "\"operation\":" + Quoted(path.names[piece.name]);
      file_->Slice(SharesPid(info_.rank), tid, analyze::Name(piece.bound), piece.begin_ns + shift_ns_,
                   piece.end_ns + shift_ns_, args);
    }
  }

  void AddDevice() {
    // Operations that overlap on a stream get a second track: slices of one track must nest.
    std::map<std::pair<uint16_t, int>, std::pair<int, int64_t>> lanes;  // -> thread id, end of the last
    for (const DeviceOp& op : trace_.ops) {
      if (!file_->Touches(op.begin_ns + shift_ns_, op.end_ns + shift_ns_)) continue;
      int lane = 0;
      auto place = lanes.find({op.stream, lane});
      while (place != lanes.end() && place->second.second > op.begin_ns)
        place = lanes.find({op.stream, ++lane});
      if (place == lanes.end()) {
        const std::string track = "stream " + trace_.streams[op.stream] + (lane > 0 ? " (overlapping)" : "");
        const int tid = file_->NewTrack(DevicePid(info_.rank), name_ + ", device", track);
        place = lanes.emplace(std::pair(op.stream, lane), std::pair(tid, int64_t{0})).first;
      }
      place->second.second = op.end_ns;
      const std::string args =
          fmt::format(R"("class":"{}","correlation":{})", record::Name(op.lane), op.correlation);
      file_->Slice(DevicePid(info_.rank), place->second.first, std::string(trace_.names[op.name]),
                   op.begin_ns + shift_ns_, op.end_ns + shift_ns_, args);
      Arrow(op, place->second.first);
    }
  }

  void AddHost() {
    for (const timeline::HostSpan& span : trace_.spans) {
      const int64_t begin = span.begin_ns + shift_ns_;
      if (!file_->Touches(begin, span.end_ns + shift_ns_)) continue;
      file_->Slice(HostPid(info_.rank), HostTid(span.thread), std::string(trace_.names[span.name]), begin,
                   span.end_ns + shift_ns_);
    }
    for (const timeline::HostCall& call : trace_.calls) {
      const int64_t begin = call.begin_ns + shift_ns_;
      if (!file_->Touches(begin, call.end_ns + shift_ns_)) continue;
      file_->Slice(HostPid(info_.rank), HostTid(call.thread), std::string(trace_.names[call.name]), begin,
                   call.end_ns + shift_ns_, fmt::format(R"("correlation":{})", call.correlation));
    }
  }

  void AddCounters() {
    for (const auto& [name, readings] : trace_.counters) {
      for (const timeline::CounterReading& reading : readings) {
        const int64_t t = reading.t_ns + shift_ns_;
        if (t < file_->window_.begin_ns || t > file_->window_.end_ns) continue;
        Counter(name, t, fmt::format(R"("value":{})", reading.value));
      }
    }
  }

 private:
  void Counter(const std::string& name, int64_t t_ns, const std::string& values) {
    file_->Event(fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{{}}}}})", Quoted(name),
                             SharesPid(info_.rank), file_->Micros(t_ns), values));
    ++file_->events_;
  }

  // From the call to the operation, where both lie in the window.
  void Arrow(const DeviceOp& op, int device_tid) {
    if (op.call == timeline::kNone) return;
    const int64_t from = op.launch_begin_ns + shift_ns_;
    const int64_t to = op.begin_ns + shift_ns_;
    const Window& window = file_->window_;
    if (from < window.begin_ns || to < window.begin_ns || from > window.end_ns || to >= window.end_ns) return;
    const std::string id = fmt::format("{}.{}", info_.rank, op.correlation);
    file_->Event(
        fmt::format(R"({{"ph":"s","cat":"launch","name":"launch","id":"{}","pid":{},"tid":{},"ts":{}}})", id,
                    HostPid(info_.rank), HostTid(op.launch_thread), file_->Micros(from)));
    file_->Event(fmt::format(
        R"({{"ph":"f","bp":"e","cat":"launch","name":"launch","id":"{}","pid":{},"tid":{},"ts":{}}})", id,
        DevicePid(info_.rank), device_tid, file_->Micros(to)));
    file_->events_ += 2;
  }

  int HostTid(uint16_t thread) {
    const auto [place, added] = host_tids_.try_emplace(thread, 0);
    if (added) {
      const std::string name =
          thread < trace_.threads.size() ? trace_.threads[thread] : std::to_string(thread);
      place->second = file_->NewTrack(HostPid(info_.rank), name_ + ", host", "thread " + name);
    }
    return place->second;
  }

  PerfettoFile* const file_;
  const timeline::DeviceTrace& trace_;
  const record::RankInfo& info_;
  const int64_t shift_ns_;
  const std::string name_;
  const analyze::RankTrace rank_;
  std::map<uint16_t, int> host_tids_;
};

void PerfettoFile::AddRank(const timeline::DeviceTrace& trace, const record::RankInfo& info, int64_t shift_ns,
                           const std::vector<int64_t>& numbers) {
  RankTracks tracks(this, trace, info, shift_ns);
  tracks.AddSteps(numbers);
  tracks.AddShares();
  tracks.AddCriticalPath();
  tracks.AddDevice();
  tracks.AddHost();
  tracks.AddCounters();
}

std::string PerfettoFile::Json() const {
  return "{\"schema\":\"fullbore.export/1\",\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + text_ +
         "\n]}\n";
}

std::string Gzip(const std::string& text, const std::string& comment) {
  constexpr int kGzipFormat = 15 + 16;  // the largest window, and a gzip header
  constexpr int kMemoryLevel = 8;       // zlib's default
  z_stream stream{};
  FB_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipFormat, kMemoryLevel,
                        Z_DEFAULT_STRATEGY) == Z_OK);
  gz_header header{};
  header.os = 255;  // unknown: the same on every machine
  header.comment = reinterpret_cast<Bytef*>(const_cast<char*>(comment.c_str()));
  FB_CHECK(deflateSetHeader(&stream, &header) == Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  FB_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace fullbore::exporting
