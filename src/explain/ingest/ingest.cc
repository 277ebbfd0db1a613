#include "explain/ingest/ingest.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "explain/ingest/gathered_ranks.h"
#include "explain/ingest/trace_files.h"
#include "explain/ingest/trace_reader.h"

namespace fullbore::ingest {
namespace {

using record::Message;
using record::Severity;

// Reads files one after the other, gives each trace its rank, and collects messages.
class Visit {
 public:
  Visit(const TraceOptions& options, TraceReader::Take visit)
      : options_(options),
        visit_(std::move(visit)),
        reader_(
            options, [this](timeline::DeviceTrace& trace, const TracePlace& place) { Take(trace, place); },
            [this](Severity severity, std::string text) { Say(severity, std::move(text)); }) {}

  Result<void> Run(const TraceFiles& files) {
    messages_ = files.notes;
    if (!files.foreign.empty()) {
      Say(Severity::kInfo, "left out: " + std::to_string(files.foreign.size()) +
                               " files that are not traces, '" + files.foreign.front() + "' the first");
    }
    // In a directory, a damaged file is left out with a message; alone, it is an error.
    const bool must_read = files.files.size() == 1;
    for (size_t i = 0; i < files.files.size(); ++i) {
      directory_rank_ = files.files[i].directory_rank;
      const Result<void> read = reader_.Read(files.files[i], i);
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

  void Take(timeline::DeviceTrace& trace, const TracePlace& place) {
    const std::string& name = place.name;
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
    if (options_.cut) options_.cut(trace);
    if (options_.look) options_.look(trace);
    visit_(trace, place);
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
  const TraceReader::Take visit_;
  TraceReader reader_;
  std::vector<Message> messages_;
  std::map<int, std::vector<Recorded>> ranks_;
  std::map<RankFrom, int64_t> told_by_;
  int64_t traces_ = 0;
  int directory_rank_ = -1;  // of the file that is being read
  std::optional<Error> first_error_;
};

// The traces that are missing, once more. What cannot be read any more stays missing, which `ranks` says.
void ReadAgain(const TraceFiles& files, const TraceOptions& options, GatheredRanks* ranks) {
  std::set<size_t> numbers;
  std::set<std::string> names;
  for (const TracePlace& place : ranks->missing()) {
    numbers.insert(place.file);
    names.insert(place.name);
  }
  TraceReader reader(
      options,
      [&](timeline::DeviceTrace& trace, const TracePlace& place) {
        if (!ranks->missing().contains(place)) return;
        if (options.cut) options.cut(trace);
        ranks->TakeAgain(trace, place);
      },
      [](Severity, const std::string&) {}, [&](const std::string& name) { return names.contains(name); });
  for (const size_t number : numbers) static_cast<void>(reader.Read(files.files[number], number));
}

}  // namespace

Result<std::vector<Message>> VisitTraces(const std::vector<std::string>& paths, const TraceOptions& options,
                                         const TraceVisitor& visit) {
  auto files = FindTraceFiles(paths);
  if (!files) return files.error();
  Visit all(options,
            [&](timeline::DeviceTrace& trace, const TracePlace& place) { visit(trace, place.name); });
  if (auto done = all.Run(*files); !done) return done.error();
  return all.TakeMessages();
}

Result<record::Recording> ReadTraces(const std::vector<std::string>& paths, const TraceOptions& options) {
  auto files = FindTraceFiles(paths);
  if (!files) return files.error();
  GatheredRanks ranks;
  Visit all(options,
            [&](timeline::DeviceTrace& trace, const TracePlace& place) { ranks.Take(trace, place); });
  if (auto done = all.Run(*files); !done) return done.error();
  ranks.Compare();
  ReadAgain(*files, options, &ranks);
  record::Recording recording;
  record::Stage stage;
  stage.messages = all.TakeMessages();
  std::move(ranks).Finish(&recording, &stage);
  const std::filesystem::path first = paths.front();  // so that "logs/" is called "logs", too
  stage.name = (first.has_filename() ? first : first.parent_path()).filename().string();
  stage.state = record::StageState::kEnded;
  recording.id = stage.name;
  recording.path = paths.front();
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
