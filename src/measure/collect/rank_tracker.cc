#include "measure/collect/rank_tracker.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "base/clock.h"
#include "base/fd.h"
#include "base/guarded_file.h"
#include "base/secrets.h"
#include "base/text.h"
#include "base/utf8.h"
#include "record/json_text.h"

namespace fullbore::collect {

namespace {

using nlohmann::json;
using record::ChannelRecord;
using record::EventKind;

constexpr int64_t kFirstStepsInFull = 2048;
constexpr int64_t kStretchSteps = 64;
constexpr int64_t kStretchEveryNs = 120 * kNsPerSecond;
constexpr int64_t kOutliersInFull = 256;
constexpr double kOutlierFactor = 3;  // times the median step
constexpr int64_t kShortWindowNs = kNsPerSecond;
constexpr int64_t kLongWindowNs = 5 * kNsPerSecond;
constexpr int64_t kShortWindowsForNs = 600 * kNsPerSecond;
constexpr int64_t kLiveNs = 5 * kNsPerSecond;
constexpr size_t kHotLinesKept = 64, kFetchLinesKept = 16;
// Workers that start anew in each epoch say their lines each time: of so many they are kept.
constexpr size_t kWorkerLinesKept = 1 << 14;
// Workers that are ended in the middle of a fetch, as at a `break`, leave it unfinished: of so many it is remembered.
constexpr size_t kUnfinishedKept = 1024, kUnfinishedStated = 16;
constexpr int64_t kLongUnfinishedNs = 30 * kNsPerSecond;

std::optional<int64_t> IntOf(const json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number_integer()) return std::nullopt;
  return at->get<int64_t>();
}

bool BoolOf(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

// Keeps the hottest lines, by samples, and adds up all others: what is told from sums must not depend on how
// many lines the time is spread over.
void FoldRareLines(std::vector<record::HotLine>& lines, size_t kept) {
  if (lines.size() <= kept) return;
  std::map<std::tuple<record::Share, record::HostOther, record::Activity, bool>, record::HotLine> rest;
  for (size_t i = kept; i < lines.size(); ++i) {
    const record::HotLine& line = lines[i];
    record::HotLine& sum = rest[{line.share, line.part, line.activity, line.in_iterator}];
    const int64_t samples = sum.samples + line.samples, slow = sum.slow_samples + line.slow_samples;
    sum = {line.share, "", 0, "", "", samples, line.part, line.activity, line.in_iterator, "", slow};
  }
  lines.resize(kept);
  for (auto& [_, sum] : rest) lines.push_back(std::move(sum));
}

// The text of one source line as it is on disk now; empty if it cannot be read. A script may have come through a pipe
// (`python <(...)`), which would keep us waiting.
std::string Front(std::string_view text) {
  constexpr size_t kMaxBytes = 160;
  return std::string(Utf8Front(Trim(text), kMaxBytes));
}

std::string SourceText(const std::string& file, int line) {
  constexpr off_t kMaxFileBytes = 16 << 20;
  const auto fd = OpenRegularFile(file);
  struct stat status {};
  if (!fd || fstat(fd->get(), &status) != 0 || status.st_size > kMaxFileBytes) return "";
  const auto text = ReadToEnd(fd->get(), file);
  if (!text) return "";
  const std::vector<std::string_view> lines = Split(*text, '\n');
  if (line < 1 || static_cast<size_t>(line) > lines.size()) return "";
  return Front(lines[static_cast<size_t>(line) - 1]);
}

}  // namespace

RankTracker::SourceLine RankTracker::SourceLineOf(const json& line) {
  return {record::TextIn(line, "file"), static_cast<int>(IntOf(line, "line").value_or(0)),
          record::TextIn(line, "function"), record::TextIn(line, "library"),
          Front(record::TextIn(line, "text"))};
}

record::Loader& RankTracker::LoaderWithId(int id) {
  for (record::Loader& loader : info_.loaders) {
    if (loader.id == id) return loader;
  }
  info_.loaders.emplace_back().id = id;
  return info_.loaders.back();
}

void RankTracker::OnTrainerEvent(const ChannelRecord& event) {
  dirty_ = true;
  const auto kind = static_cast<EventKind>(event.kind);
  if (kind == EventKind::kFetch) OnFetch(0, event);
  if (kind == EventKind::kNext) OnNext(event);
  if (kind == EventKind::kMemory) allocator_meter_.OnEvent(event);
  if (kind == EventKind::kOptimizer && event.a == 1) is_training_ = true;
  if (kind == EventKind::kOther && event.id == static_cast<uint16_t>(record::OtherKind::kCheckpoint))
    OnCheckpoint(event);
  host_steps_.OnEvent(event);
}

// Also one of another thread, or after the last step, which no step tells of.
void RankTracker::OnCheckpoint(const ChannelRecord& event) {
  ++checkpoints_;
  last_checkpoint_ns_ = std::max(last_checkpoint_ns_, event.end_ns);
  info_.facts["checkpoints"] = json{{"count", checkpoints_}, {"last_end_ns", last_checkpoint_ns_}}.dump();
}

void RankTracker::OnWorkerEvent(int64_t worker_pid, const ChannelRecord& event) {
  dirty_ = true;
  if (static_cast<EventKind>(event.kind) == EventKind::kFetch) {
    OnFetch(worker_pid, event);
    unfinished_.erase(worker_pid);
  }
  if (static_cast<EventKind>(event.kind) != EventKind::kLine) return;
  const auto line = worker_lines_.find({worker_pid, event.a});
  if (line == worker_lines_.end()) return;
  const FetchHit hit{event.id, line->second, record::ActivityNumbered(event.c)};
  ++fetch_hits_[hit];
  OnLineOfFetch(worker_pid, hit, event.end_ns);
}

void RankTracker::OnLineOfFetch(int64_t worker_pid, const FetchHit& hit, int64_t t_ns) {
  if (unfinished_.size() >= kUnfinishedKept && !unfinished_.contains(worker_pid)) {
    std::erase_if(unfinished_,
                  [&](const auto& one) { return t_ns - one.second.seen_ns > kLongUnfinishedNs; });
    if (unfinished_.size() >= kUnfinishedKept) return;
  }
  Unfinished& fetch = unfinished_[worker_pid];
  if (fetch.begin_ns == 0) fetch.begin_ns = t_ns;
  if (fetch.at != hit) fetch.samples_there = 0;
  fetch.at = hit;
  fetch.seen_ns = t_ns;
  ++fetch.samples_there;
}

void RankTracker::OnWorkerLine(int64_t worker_pid, const json& line) {
  if (record::TextIn(line, "k") == "message") return OnLine(line);
  if (record::TextIn(line, "k") == "hello")
    unfinished_.erase(worker_pid);  // of another process that had the number
  if (record::TextIn(line, "k") != "line" || worker_lines_.size() >= kWorkerLinesKept) return;
  worker_lines_[{worker_pid, IntOf(line, "id").value_or(0)}] = SourceLineOf(line);
}

void RankTracker::OnFetch(int64_t worker_key, const ChannelRecord& event) {
  record::Loader& loader = LoaderWithId(event.id);
  const int64_t fetch_ns = event.end_ns - event.begin_ns;
  ++loader.batches;
  loader.samples += event.a & 0xffffffff;
  loader.fetch_ns += fetch_ns;
  // What is scaled from another fetch, or was counted while the command stood, may seem to last longer than all of this one.
  const auto part_ns = [fetch_ns](int64_t ns) {
    return std::clamp<int64_t>(ns, 0, std::max<int64_t>(0, fetch_ns));
  };
  loader.cpu_ns += part_ns(event.b);
  loader.collate_ns += part_ns(event.c);
  loader.run_delay_ns += part_ns(event.d);
  loader.batch_fetch_ns.Add(static_cast<double>(fetch_ns));
  loader.slowest_sample_ns.Add(static_cast<double>(static_cast<uint64_t>(event.a) >> 32) * 1e3);
  Worker& worker = workers_[{worker_key, loader.id}];
  if (worker.first_ns == 0) worker.first_ns = worker.last_ns = event.begin_ns;
  loader.worker_span_ns += event.end_ns - worker.last_ns;
  loader.worker_idle_ns += std::max<int64_t>(0, event.begin_ns - worker.last_ns);
  worker.last_ns = event.end_ns;
}

void RankTracker::OnNext(const ChannelRecord& event) {
  record::Loader& loader = LoaderWithId(event.id);
  const int64_t wait_ns = event.end_ns - event.begin_ns;
  // Workers that are not kept are waited for twice: their end belongs to the `next` that brings no batch any more.
  int64_t& epoch_end_ns = epoch_end_ns_[loader.id];
  // An epoch that brought nothing, because it failed, or was given up while its first batch did not come.
  if (event.c == 1 && event.a == 0 && loader_counts_.contains(loader.id)) {
    epoch_end_ns = 0;
    return;
  }
  if (event.a > 0) loader_counts_.insert(loader.id);
  if (event.c == 1 && loader.wait_ns.count() > 0) {
    ++loader.restarts;
    loader.restart_wait_ns += wait_ns + epoch_end_ns;
  }
  epoch_end_ns = event.a == 0 ? wait_ns : 0;
  loader.wait_ns.Add(static_cast<double>(wait_ns));
}

void RankTracker::OnLine(const json& line) {
  dirty_ = true;
  const std::string kind = record::TextIn(line, "k");
  if (kind == "hello") {
    wanted_rank_ = static_cast<int>(IntOf(line, "rank").value_or(-1));
  } else if (kind == "fact") {
    const auto value = line.find("value");
    const std::string key = record::TextIn(line, "key");
    if (value == line.end() || key.empty()) return;
    info_.facts[key] = value->dump(-1, ' ', false, json::error_handler_t::replace);
    if (key == "device" && value->is_string()) info_.device = value->get<std::string>();
  } else if (kind == "loader") {
    record::Loader& loader = LoaderWithId(static_cast<int>(IntOf(line, "id").value_or(0)));
    const auto args = line.find("args");
    const json& a = args != line.end() && args->is_object() ? *args : line;
    loader.num_workers = IntOf(a, "num_workers").value_or(0);
    loader.batch_size = IntOf(a, "batch_size");
    loader.prefetch_factor = IntOf(a, "prefetch_factor");
    loader.pin_memory = BoolOf(a, "pin_memory");
    loader.persistent_workers = BoolOf(a, "persistent_workers");
    loader.default_collate = BoolOf(a, "default_collate");
    loader.start_method = record::TextIn(a, "start_method");
    loader.dataset = record::TextIn(line, "dataset");
    loader.dataset_samples = IntOf(line, "dataset_len");
    loader.where = record::TextIn(line, "where");
    loader.library = record::TextIn(line, "library");
    loader.threads = IntOf(a, "threads");
    loader.map_processes = IntOf(a, "map_processes");
  } else if (kind == "loader_fast") {
    record::Loader& loader = LoaderWithId(static_cast<int>(IntOf(line, "id").value_or(0)));
    loader.fast_sample_ns = IntOf(line, "cpu_ns_per_sample");
    loader.fast_refused = record::TextIn(line, "refused");
  } else if (kind == "draw") {
    const int id = static_cast<int>(IntOf(line, "id").value_or(0));
    if (drew_.insert(id).second) return;  // the run's first epoch: nothing restarts
    record::Loader& loader = LoaderWithId(id);
    ++loader.draws;
    loader.draw_ns += std::max<int64_t>(0, IntOf(line, "ns").value_or(0));
  } else if (kind == "device_window") {
    device_windows_.push_back({record::TextIn(line, "file"), IntOf(line, "first_step").value_or(0),
                               IntOf(line, "steps").value_or(0)});
  } else if (kind == "loader_stages") {
    loader_meter_.OnTotals(line);
  } else if (kind == "logged") {
    logged_meter_.OnPoints(line);
  } else if (kind == "line") {
    source_lines_[IntOf(line, "id").value_or(0)] = SourceLineOf(line);
  } else if (kind == "where") {
    info_.facts["where." + record::TextIn(line, "what")] =
        json(record::TextIn(line, "file") + ":" + std::to_string(IntOf(line, "line").value_or(0))).dump();
  } else if (kind == "message") {
    const std::string severity = record::TextIn(line, "severity");
    const auto level = severity == "error"     ? record::Severity::kError
                       : severity == "warning" ? record::Severity::kWarning
                                               : record::Severity::kInfo;
    const std::string text = record::TextIn(line, "text"), source = record::TextIn(line, "source");
    if (counts_[text]++ == 0) {
      messages_.push_back({IntOf(line, "t"), level, source.empty() ? "hook" : source, text});
    }
  } else if (kind == "bye") {
    if (const auto ns = IntOf(line, "hook_ns")) info_.facts["hook_ns"] = std::to_string(*ns);
  }
}

bool RankTracker::KeepInFull(const record::Step& step) {
  if (step.index < kFirstStepsInFull || step.index < stretch_until_step_) return true;
  if (step.end_ns >= next_stretch_ns_) {
    stretch_until_step_ = step.index + kStretchSteps;
    next_stretch_ns_ = step.end_ns + kStretchEveryNs;
    return true;
  }
  const bool outlier = static_cast<double>(step.wall_ns) > kOutlierFactor * wall_ns_.Quantile(0.5);
  return outlier && outliers_kept_++ < kOutliersInFull;
}

void RankTracker::OnStep(const record::Step& step, record::RunWriter& writer) {
  ++steps_seen_;
  if (listener_) listener_(info_, step);
  if (first_step_ns_ == 0) first_step_ns_ = step.end_ns - step.wall_ns;
  wall_ns_.Add(static_cast<double>(step.wall_ns));
  if (KeepInFull(step)) writer.AppendStep(info_.rank, step);
  recent_.push_back(step);
  while (recent_.size() > 1 && recent_.front().end_ns < step.end_ns - kLiveNs) recent_.pop_front();

  const int64_t begin_ns = step.end_ns - step.wall_ns;
  const int64_t window_ns = begin_ns - first_step_ns_ < kShortWindowsForNs ? kShortWindowNs : kLongWindowNs;
  if (window_.steps > 0 && step.end_ns - window_.begin_ns > window_ns) {
    writer.AppendWindow(info_.rank, window_);
    window_ = {};
  }
  if (window_.steps == 0) {
    window_.begin_ns = begin_ns;
    window_.first_step = step.index;
    window_.min_wall_ns = step.wall_ns;
  }
  window_.end_ns = step.end_ns;
  ++window_.steps;
  window_.samples += step.samples;
  window_.min_wall_ns = std::min(window_.min_wall_ns, step.wall_ns);
  window_.max_wall_ns = std::max(window_.max_wall_ns, step.wall_ns);
  for (size_t i = 0; i < record::kShareCount; ++i) window_.share_ns[i] += step.share_ns[i];
  for (size_t i = 0; i < record::kHostOtherCount; ++i) window_.host_other_ns[i] += step.host_other_ns[i];
}

void RankTracker::UpdateHotLines() {
  for (const auto& [key, hits] : host_steps_.TakeLineHits()) line_hits_[key] += hits;
  info_.hot_lines.clear();
  std::map<timeline::LineHit, size_t> places;  // of the lines, whether their steps are slow or not
  for (const auto& [hit, samples] : line_hits_) {
    const auto source = source_lines_.find(hit.line);
    if (source == source_lines_.end()) continue;
    const SourceLine& at = source->second;
    timeline::LineHit any = hit;
    any.slow = false;
    const auto [place, is_new] = places.try_emplace(any, info_.hot_lines.size());
    if (is_new)
      info_.hot_lines.push_back({hit.share, at.file, at.line, at.function, at.text, 0, hit.part, hit.activity,
                                 hit.in_iterator, at.library});
    record::HotLine& line = info_.hot_lines[place->second];
    line.samples += samples;
    line.slow_samples += hit.slow ? samples : 0;
  }
  std::stable_sort(info_.hot_lines.begin(), info_.hot_lines.end(),
                   [](const auto& a, const auto& b) { return a.samples > b.samples; });
  FoldRareLines(info_.hot_lines, kHotLinesKept);
}

void RankTracker::UpdateLinesOfFetches() {
  for (record::Loader& loader : info_.loaders) {
    loader.lines.clear();
    for (const auto& [hit, samples] : fetch_hits_) {
      if (hit.loader != loader.id) continue;
      record::HotLine& line = loader.lines.emplace_back();
      line.share = record::Share::kDataWait;
      line.file = hit.line.file;
      line.line = hit.line.line;
      line.function = hit.line.function;
      line.library = hit.line.library;
      line.text = hit.line.text;
      line.samples = samples;
      line.activity = hit.activity;
    }
    std::ranges::stable_sort(loader.lines, std::greater(), &record::HotLine::samples);
    FoldRareLines(loader.lines, kFetchLinesKept);
  }
}

// What of the passes is no share of the step's: docs/run-file.md describes the facts.
void RankTracker::StatePasses() {
  const timeline::Passes::Totals& passes = host_steps_.passes();
  if (passes.frozen_ns > 0 || passes.apart_ns > 0) {
    info_.facts["passes"] = json{
        {"forward_ns", passes.forward_ns},
        {"frozen_ns", passes.frozen_ns},
        {"apart_ns", passes.apart_ns},
        {"apart_first_ns",
         passes.apart_first_ns}}.dump();
  }
  if (const timeline::Passes::Validations& validations = host_steps_.validations(); validations.count > 0) {
    info_.facts["validations"] = json{
        {"count", validations.count},
        {"ns", validations.ns},
        {"between_ns", validations.between_ns},
        {"growing_ns", validations.growing_ns},
        {"after_ns",
         validations.after_ns}}.dump();
  }
  const timeline::Exchanges& exchanges = host_steps_.exchanges();
  if (exchanges.passes > 0) {
    info_.facts["exchanges"] = json{
        {"steps", exchanges.steps},
        {"passes", exchanges.passes},
        {"exchanging", exchanges.exchanging},
        {"early", exchanges.early},
        {"collectives_ns", exchanges.collectives_ns},
        {"reducing_ns",
         exchanges.reducing_ns}}.dump();
  }
  if (host_steps_.computes_unseen()) info_.facts["computes_unseen"] = "true";
}

// Fetches that take far longer than any should: where the training stands still, that is what it waits for.
void RankTracker::StateUnfinished() {
  json stated = json::array();
  for (const auto& [pid, fetch] : unfinished_) {
    if (fetch.seen_ns - fetch.begin_ns < kLongUnfinishedNs || stated.size() >= kUnfinishedStated) continue;
    stated.push_back({{"pid", pid},
                      {"loader", fetch.at.loader},
                      {"begin_ns", fetch.begin_ns},
                      {"seen_ns", fetch.seen_ns},
                      {"file", fetch.at.line.file},
                      {"line", fetch.at.line.line},
                      {"activity", record::Name(fetch.at.activity)},
                      {"samples", fetch.samples_there}});
  }
  if (stated.empty())
    info_.facts.erase("unfinished_fetches");
  else
    info_.facts["unfinished_fetches"] = stated.dump(-1, ' ', false, json::error_handler_t::replace);
}

void RankTracker::CountBatchesAsSteps() {
  if (!takes_batches() || !host_steps_.TakeBatchesForSteps()) return;
  is_training_ = dirty_ = true;
  info_.facts["step_is"] = "\"batch\"";
}

void RankTracker::Drain(record::RunWriter& writer, bool last) {
  for (const record::Step& step : host_steps_.TakeSteps(last)) OnStep(step, writer);
  loader_meter_.Drain(info_.rank, writer);
  logged_meter_.Drain(info_.rank, writer);
  allocator_meter_.Drain(info_.rank, writer);
  if (last && window_.steps > 0) {
    writer.AppendWindow(info_.rank, window_);
    window_ = {};
  }
  const int64_t now_ns = MonotonicNs();
  if (!is_training_ || !(dirty_ || last) || (now_ns < next_put_ns_ && !last)) return;
  // What is rewritten as a whole is written less often as the run grows older.
  next_put_ns_ = now_ns + (steps_seen_ < kFirstStepsInFull ? kNsPerSecond : 10 * kNsPerSecond);
  dirty_ = false;
  info_.samples_known = host_steps_.samples_known();
  for (record::Loader& loader : info_.loaders) {
    loader.feeds_training = host_steps_.IsTrainingLoader(static_cast<uint16_t>(loader.id));
  }
  if (lost_events_ + host_steps_.dropped_events() > 0) {
    info_.facts["lost_events"] = std::to_string(lost_events_ + host_steps_.dropped_events());
    info_.facts["missed_ns"] = std::to_string(host_steps_.missed_ns());
  }
  StatePasses();
  StateUnfinished();
  UpdateHotLines();
  UpdateLinesOfFetches();
  if (last) {
    const auto read = [](record::HotLine& line) {
      line.text = MaskSecrets(line.text.empty() ? SourceText(line.file, line.line) : line.text);
    };
    std::ranges::for_each(info_.hot_lines, read);
    for (record::Loader& loader : info_.loaders) std::ranges::for_each(loader.lines, read);
  }
  writer.PutRank(info_);
}

RankTracker::Live RankTracker::live(int64_t now_ns) const {
  Live live;
  live.steps = steps_seen_;
  int64_t wall_ns = 0, waiting_ns = 0, samples = 0, steps = 0;
  for (const record::Step& step : recent_) {
    if (step.end_ns < now_ns - 2 * kLiveNs) continue;
    wall_ns += step.wall_ns;
    waiting_ns += step.share_ns[Index(record::Share::kDataWait)];
    samples += step.samples;
    ++steps;
  }
  if (wall_ns == 0) return live;
  const double seconds = static_cast<double>(wall_ns) / 1e9;
  live.samples_per_s = static_cast<double>(samples) / seconds;
  live.steps_per_s = static_cast<double>(steps) / seconds;
  live.waiting_share = static_cast<double>(waiting_ns) / static_cast<double>(wall_ns);
  return live;
}

}  // namespace fullbore::collect
