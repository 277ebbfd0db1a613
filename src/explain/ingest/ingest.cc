#include "explain/ingest/ingest.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "explain/ingest/archive_reader.h"
#include "explain/ingest/byte_source.h"
#include "explain/ingest/foreign_formats.h"
#include "explain/ingest/kineto/kineto_reader.h"
#include "explain/ingest/nsys/nsys_reader.h"
#include "explain/ingest/span_names.h"
#include "explain/ingest/trace_files.h"
#include "explain/roofline/host_operators.h"
#include "explain/roofline/host_work.h"
#include "explain/roofline/matrix_units.h"
#include "explain/roofline/precision.h"
#include "explain/roofline/roofline.h"
#include "timeline/device/rank.h"
#include "timeline/device/ranks.h"
#include "timeline/device/steps.h"
#include "timeline/device/stretches.h"

namespace fullbore::ingest {
namespace {

constexpr int64_t kMaxNamedMembers =
    20;  // of the left-out members of an archive; the others are only counted

using record::Message;
using record::Severity;

// Reads files one after the other, gives each trace its rank, and collects messages.
class Visit {
 public:
  Visit(const TraceOptions& options, const TraceVisitor& visit) : options_(options), visit_(visit) {}

  Result<void> Run(const TraceFiles& files) {
    messages_ = files.notes;
    if (!files.foreign.empty()) {
      Say(Severity::kInfo, "left out: " + std::to_string(files.foreign.size()) +
                               " files that are not traces, '" + files.foreign.front() + "' the first");
    }
    // In a directory, a damaged file is left out with a message; alone, it is an error.
    const bool must_read = files.files.size() == 1;
    for (const TraceFile& file : files.files) {
      directory_rank_ = file.directory_rank;
      const Result<void> read = ReadFile(file);
      if (read) continue;
      if (must_read) return read.error();
      Say(Severity::kError, "left out: " + ToString(read.error()));
      if (!first_error_) first_error_ = read.error();
    }
    if (traces_ == 0) {
      return first_error_ ? *first_error_ : Error{ErrorCode::kNotFound, "the files hold no trace", ""};
    }
    SayHowRanksWereTold();
    return {};
  }

  std::vector<Message> TakeMessages() { return std::move(messages_); }

 private:
  enum class RankFrom : uint8_t { kTrace, kName, kOrder };

  Result<void> ReadFile(const TraceFile& file) {
    switch (file.kind) {
      case FileKind::kSqlite:
        return ReadNsysFile(file.path);
      case FileKind::kArchive:
        return ReadArchive(file.path);
      case FileKind::kForeign:
        if (const auto foreign = ForeignFile(file.path)) return *foreign;
        break;
      case FileKind::kJson:
        break;
    }
    auto source = OpenBytes(file.path);
    if (!source) return source.error();
    return ReadJson(std::move(*source), file.path);
  }

  Result<void> ReadJson(std::unique_ptr<ByteSource> source, const std::string& name) {
    kineto::ReadOptions options;
    options.stacks = options_.stacks;
    if (options_.progress) {
      options.progress = [&](int64_t position, int64_t size) { options_.progress(name, position, size); };
    }
    auto trace = kineto::ReadKineto(std::move(source), name, options);
    if (!trace) return trace.error();
    Take(*trace, name);
    return {};
  }

  Result<void> ReadArchive(const std::string& path) {
    auto source = OpenBytes(path);
    if (!source) return source.error();
    ArchiveReader archive(std::move(*source));
    int64_t read = 0, left_out = 0;
    std::optional<Error> first_error;
    for (;;) {
      auto next = archive.Next();
      if (!next) {
        const Error error{next.error().code, "cannot read '" + path + "': " + next.error().text,
                          next.error().hint};
        if (read == 0) return error;
        Say(Severity::kError, "the rest is left out: " + ToString(error));
        break;
      }
      if (!*next) break;
      if (archive.name().starts_with("__MACOSX/"))
        continue;  // what macOS knows about the files besides their bytes
      const std::string name = path + ":" + archive.name();
      const auto member = ReadMember(archive, name);
      if (!member && !first_error) first_error = member.error();
      if (member) {
        ++read;
      } else if (++left_out <= kMaxNamedMembers) {
        Say(Severity::kError, "left out: " + ToString(member.error()));
      }
    }
    if (left_out > kMaxNamedMembers) {
      Say(Severity::kError,
          "left out: " + std::to_string(left_out - kMaxNamedMembers) + " more files of '" + path + "'");
    }
    if (read == 0 && left_out == 1) return *first_error;  // packed alone: what it is says more
    if (read == 0) return Error{ErrorCode::kCorrupt, "'" + path + "' holds no readable trace", ""};
    return {};
  }

  Result<void> ReadMember(ArchiveReader& archive, const std::string& name) {
    constexpr size_t kHeadBytes = 512;
    auto contents = Unpack(archive.Contents());
    if (!contents) return contents.error();
    auto head = HeadOf(**contents, kHeadBytes);
    if (!head)
      return Error{head.error().code, "cannot read '" + name + "': " + head.error().text, head.error().hint};
    if (auto foreign = ForeignFormat(name, *head)) return *foreign;
    if (head->starts_with("SQLite format 3")) {
      return Error{ErrorCode::kUnsupported,
                   "'" + name + "' is an SQLite file, which cannot be read in an archive",
                   "unpack it, and explain the file itself"};
    }
    return ReadJson(Rejoined(std::move(*head), std::move(*contents)), name);
  }

  Result<void> ReadNsysFile(const std::string& path) {
    auto traces = nsys::ReadNsys(path);
    if (!traces) return traces.error();
    for (timeline::DeviceTrace& trace : *traces) Take(trace, path);
    return {};
  }

  void Take(timeline::DeviceTrace& trace, const std::string& name) {
    TakeRank(trace, name);
    for (timeline::DeviceTrace& other : trace.others) TakeRank(other, name);
  }

  void TakeRank(timeline::DeviceTrace& trace, const std::string& name) {
    RankFrom from = RankFrom::kTrace;
    int rank = trace.rank.value_or(-1);
    if (rank < 0) {
      rank = directory_rank_ >= 0 ? directory_rank_ : RankInName(name);
      from = RankFrom::kName;
    }
    const Recorded recorded = RecordedBy(trace, name);
    if (rank < 0) rank = RankOfEarlier(recorded);
    if (rank < 0) {
      rank = 0;
      while (ranks_.count(rank) != 0) ++rank;
      from = RankFrom::kOrder;
    }
    if (const auto known = ranks_.find(rank); known == ranks_.end()) {
      ranks_[rank] = {recorded};
      ++told_by_[from];
    } else if (Continues(recorded, known->second)) {
      known->second.push_back(recorded);
      Say(Severity::kInfo,
          "'" + known->second.front().file + "' and '" + name +
              "' are recordings of one process, one after the other: they are taken as one rank");
    } else {
      Say(Severity::kWarning, "left out: '" + name + "' claims rank " + std::to_string(rank) + ", as '" +
                                  known->second.front().file + "' does: only the first is judged");
      return;
    }
    ++traces_;
    if (trace.events == 0) Say(Severity::kWarning, "'" + name + "' holds no events");
    trace.rank = rank;
    if (options_.prepare) options_.prepare(trace);
    visit_(trace, name);
  }

  // What tells a process, and when it was recorded.
  struct Recorded {
    std::string file;
    std::string
        worker;  // "gpu01_4242", as tensorboard_trace_handler begins the names of its files; or nothing
    int64_t pid = 0;
    int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;  // by the wall clock
  };

  static Recorded RecordedBy(const timeline::DeviceTrace& trace, const std::string& name) {
    Recorded recorded{name, "", trace.pid};
    const std::string file = std::filesystem::path(name).filename().string();
    const std::string number = "_" + std::to_string(trace.pid) + ".";
    if (const size_t at = file.find(number); at != std::string::npos && at > 0)
      recorded.worker = file.substr(0, at + number.size() - 1);
    const auto widen = [&](int64_t begin_ns, int64_t end_ns) {
      recorded.begin_ns = std::min(recorded.begin_ns, begin_ns);
      recorded.end_ns = std::max(recorded.end_ns, end_ns);
    };
    for (const timeline::DeviceOp& op : trace.ops) widen(op.begin_ns, op.end_ns);
    for (const timeline::HostSpan& span : trace.spans) widen(span.begin_ns, span.end_ns);
    if (recorded.begin_ns <= recorded.end_ns) {
      recorded.begin_ns += trace.base_ns;
      recorded.end_ns += trace.base_ns;
    }
    return recorded;
  }

  // Another recording of a process of known rank: later or earlier, not at the same time.
  static bool Continues(const Recorded& recorded, const std::vector<Recorded>& known) {
    return recorded.pid != 0 && std::all_of(known.begin(), known.end(), [&](const Recorded& other) {
             return other.pid == recorded.pid && other.worker == recorded.worker &&
                    (other.end_ns <= recorded.begin_ns || recorded.end_ns <= other.begin_ns);
           });
  }

  // Of a trace that does not say its rank. Other hosts have processes of the same number: the name must tell.
  int RankOfEarlier(const Recorded& recorded) const {
    if (recorded.worker.empty()) return -1;
    for (const auto& [rank, known] : ranks_) {
      if (Continues(recorded, known)) return rank;
    }
    return -1;
  }

  void SayHowRanksWereTold() {
    if (ranks_.size() < 2) return;
    if (told_by_[RankFrom::kName] > 0) {
      Say(Severity::kInfo, "the rank of " + std::to_string(told_by_[RankFrom::kName]) +
                               " traces is taken from the name of the file or its directory: the traces "
                               "themselves do not say it");
    }
    if (told_by_[RankFrom::kOrder] > 0) {
      Say(Severity::kWarning,
          "the rank of " + std::to_string(told_by_[RankFrom::kOrder]) +
              " traces is taken from their order: neither the traces nor their names say it");
    }
  }

  void Say(Severity severity, std::string text) {
    messages_.push_back({std::nullopt, severity, "ingest", std::move(text)});
  }

  const TraceOptions& options_;
  const TraceVisitor& visit_;
  std::vector<Message> messages_;
  std::map<int, std::vector<Recorded>> ranks_;
  std::map<RankFrom, int64_t> told_by_;
  int64_t traces_ = 0;
  int directory_rank_ = -1;  // of the file that is being read
  std::optional<Error> first_error_;
};

// The steps of the rank on its own clock, as the roofline takes them.
std::vector<timeline::StepBounds> BoundsOf(const std::vector<record::Step>& steps) {
  std::vector<timeline::StepBounds> bounds;
  for (const record::Step& step : steps) bounds.push_back({step.end_ns - step.wall_ns, step.end_ns});
  return bounds;
}

struct Gathered {
  record::RankInfo info;
  timeline::Arrivals arrivals;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t base_shift_ns = 0;
};

// What the names say about the program, for the judges and for the changes that may be made to its steps.
void TellProgram(const Program& program, record::RankInfo* info) {
  if (!program.optimizer.empty()) info->facts["optimizer"] = timeline::JsonText(program.optimizer);
  if (!program.wrapper.empty()) info->facts["distributed"] = timeline::JsonText(program.wrapper);
  if (program.compiled) info->facts["compiled"] = "true";
  if (!info->graph) return;
  const auto gpu = info->facts.find("gpu");
  const std::string name = gpu == info->facts.end() ? "" : gpu->second.substr(1, gpu->second.size() - 2);
  const auto kernels = info->tables ? info->tables->kernels : std::vector<record::KernelStats>();
  info->graph->matrix_units = roofline::MatrixUnitsOf(name, kernels);
  info->graph->optimizer = program.optimizer;
  info->graph->compiled = program.compiled;
}

// Ranks in order, on the clock of the first one's base time; the recordings of one process are one.
std::vector<Gathered> JoinRecordings(std::vector<Gathered> recordings) {
  for (Gathered& each : recordings) {
    timeline::ShiftTimes(each.base_shift_ns, &each.info);
    timeline::ShiftTimes(each.base_shift_ns, &each.arrivals);
    each.begin_ns += each.base_shift_ns;
    each.end_ns += each.base_shift_ns;
  }
  std::stable_sort(recordings.begin(), recordings.end(), [](const Gathered& a, const Gathered& b) {
    return a.info.rank != b.info.rank ? a.info.rank < b.info.rank : a.begin_ns < b.begin_ns;
  });
  std::vector<Gathered> ranks;
  for (Gathered& each : recordings) {
    if (ranks.empty() || ranks.back().info.rank != each.info.rank) {
      ranks.push_back(std::move(each));
      continue;
    }
    Gathered& rank = ranks.back();
    timeline::Append(std::move(each.info), &rank.info);
    timeline::Append(each.arrivals, &rank.arrivals);
    rank.end_ns = std::max(rank.end_ns, each.end_ns);
  }
  return ranks;
}

void Finish(std::vector<Gathered> recordings, record::Stage* stage) {
  std::vector<Gathered> ranks = JoinRecordings(std::move(recordings));
  std::vector<timeline::Arrivals> arrivals;
  for (Gathered& rank : ranks) arrivals.push_back(std::move(rank.arrivals));
  const timeline::RankComparison comparison = timeline::CompareRanks(arrivals);
  for (const std::string& note : comparison.notes) {
    stage->messages.push_back({std::nullopt, Severity::kInfo, "ingest", note});
  }
  bool first = true;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int64_t shift = comparison.ranks[i].shift_ns;
    timeline::ApplyWaits(arrivals[i], comparison.ranks[i], &ranks[i].info);
    timeline::ShiftTimes(shift, &ranks[i].info);
    const int64_t begin = ranks[i].begin_ns + shift;
    const int64_t end = ranks[i].end_ns + shift;
    stage->begin_ns = first ? begin : std::min(stage->begin_ns, begin);
    stage->end_ns = first ? end : std::max(stage->end_ns, end);
    first = false;
    stage->ranks.push_back(std::move(ranks[i].info));
  }
}

}  // namespace

Result<std::vector<Message>> VisitTraces(const std::vector<std::string>& paths, const TraceOptions& options,
                                         const TraceVisitor& visit) {
  auto files = FindTraceFiles(paths);
  if (!files) return files.error();
  Visit all(options, visit);
  if (auto done = all.Run(*files); !done) return done.error();
  return all.TakeMessages();
}

Result<record::Recording> ReadTraces(const std::vector<std::string>& paths, const TraceOptions& options) {
  record::Recording recording;
  record::Stage stage;
  std::vector<Gathered> ranks;
  std::vector<Message> notes;
  std::optional<int64_t> base_ns;
  std::optional<size_t> shown;  // the same step of all ranks
  auto messages = VisitTraces(paths, options, [&](timeline::DeviceTrace& trace, const std::string& file) {
    timeline::RankResult result = timeline::SummariseRank(trace, shown);
    if (result.info.timeline && !shown) shown = static_cast<size_t>(result.info.timeline->step);
    result.info.rank = *trace.rank;
    result.info.roofline = roofline::RooflineOf(trace, BoundsOf(result.info.steps),
                                                result.info.graph ? &*result.info.graph : nullptr);
    if (!result.info.device_activity) {
      result.info.operators = roofline::HostOperators(trace, BoundsOf(result.info.steps));
      result.info.host_work = roofline::HostWorkOf(trace, BoundsOf(result.info.steps));
    }
    if (const auto* device = roofline::DeviceOf(trace); device != nullptr && result.info.graph) {
      const auto* judged = result.info.roofline ? &*result.info.roofline : nullptr;
      if (const auto left = roofline::LeftOnTensorCores(judged, *device))
        result.info.graph->left_on_tensor_cores = *left;
      result.info.graph->link_bytes_per_ns = device->bus_gb;
      result.info.graph->device = device->name;
    }
    TellProgram(ProgramIn(trace), &result.info);
    result.info.facts["trace_events"] = std::to_string(trace.events);
    result.info.facts["trace_file"] = timeline::JsonText(std::filesystem::path(file).filename().string());
    for (std::string& note : result.notes) {
      if (note.find(file) == std::string::npos) note = "rank " + std::to_string(*trace.rank) + ": " + note;
      notes.push_back({std::nullopt, Severity::kInfo, "ingest", std::move(note)});
    }
    for (record::Series& series : result.series) stage.series.push_back(std::move(series));
    if (!base_ns) base_ns = trace.base_ns;
    recording.source = trace.source;
    // Traces of different hosts count from different base times: convert them to the first one's before
    // clocks are compared.
    ranks.push_back({std::move(result.info), timeline::ArrivalsOf(trace, result.comm_exposed),
                     result.begin_ns, result.end_ns, trace.base_ns - *base_ns});
  });
  if (!messages) return messages.error();
  stage.messages = std::move(*messages);
  std::move(notes.begin(), notes.end(), std::back_inserter(stage.messages));
  Finish(std::move(ranks), &stage);
  const std::filesystem::path first = paths.front();  // so that "logs/" is called "logs", too
  stage.name = (first.has_filename() ? first : first.parent_path()).filename().string();
  stage.state = record::StageState::kEnded;
  recording.id = stage.name;
  recording.path = paths.front();
  recording.wall_offset_ns = base_ns.value_or(0);
  for (const record::RankInfo& rank : stage.ranks) {
    const auto gpu = rank.facts.find("gpu");
    if (gpu != rank.facts.end() && gpu->second.size() > 2) {
      recording.machine["gpu" + std::to_string(rank.rank)] = gpu->second.substr(1, gpu->second.size() - 2);
    }
  }
  recording.stages.push_back(std::move(stage));
  return recording;
}

}  // namespace fullbore::ingest
