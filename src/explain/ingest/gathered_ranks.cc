#include "explain/ingest/gathered_ranks.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "explain/ingest/span_names.h"
#include "explain/roofline/host_operators.h"
#include "explain/roofline/host_work.h"
#include "explain/roofline/matrix_units.h"
#include "explain/roofline/precision.h"
#include "explain/roofline/roofline.h"
#include "timeline/device/steps.h"
#include "timeline/device/stretches.h"

namespace fullbore::ingest {

using record::Severity;

namespace {

// The steps of the rank on its own clock, as the roofline takes them.
std::vector<timeline::StepBounds> BoundsOf(const std::vector<record::Step>& steps) {
  std::vector<timeline::StepBounds> bounds;
  for (const record::Step& step : steps) bounds.push_back({step.end_ns - step.wall_ns, step.end_ns});
  return bounds;
}

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

// What the device could do, for the changes that may be made to the steps.
void TellDevice(const timeline::DeviceTrace& trace, record::RankInfo* info) {
  const auto* device = roofline::DeviceOf(trace);
  if (device == nullptr || !info->graph) return;
  const auto* judged = info->roofline ? &*info->roofline : nullptr;
  if (const auto left = roofline::LeftOnTensorCores(judged, *device))
    info->graph->left_on_tensor_cores = *left;
  info->graph->link_bytes_per_ns = device->bus_gb;
  info->graph->device = device->name;
}

size_t ArrivalsIn(const std::optional<record::StepGraph>& graph) {
  if (!graph) return 0;
  return static_cast<size_t>(std::ranges::count_if(graph->nodes, [](const record::StepGraph::Node& node) {
    return node.work == record::Work::kDevice && node.lane == record::Lane::kComm;
  }));
}

void LetGo(record::RankInfo* info) {
  info->graph.reset();
  info->timeline.reset();
}

record::Message Note(std::string text) { return {std::nullopt, Severity::kInfo, "ingest", std::move(text)}; }

}  // namespace

timeline::RankResult GatheredRanks::Summarised(const timeline::DeviceTrace& trace) {
  timeline::RankResult result = timeline::SummariseRank(trace, shown_);
  record::RankInfo& info = result.info;
  if (info.timeline && !shown_) shown_ = static_cast<size_t>(info.timeline->step);
  info.rank = *trace.rank;
  const std::vector<timeline::StepBounds> bounds = BoundsOf(info.steps);
  info.roofline = roofline::RooflineOf(trace, bounds, info.graph ? &*info.graph : nullptr);
  if (!info.device_activity) {
    info.operators = roofline::HostOperators(trace, bounds);
    info.host_work = roofline::HostWorkOf(trace, bounds);
  }
  TellDevice(trace, &info);
  TellProgram(ProgramIn(trace), &info);
  return result;
}

void GatheredRanks::Take(timeline::DeviceTrace& trace, const TracePlace& place) {
  timeline::RankResult result = Summarised(trace);
  record::RankInfo& info = result.info;
  info.facts["trace_events"] = std::to_string(trace.events);
  info.facts["trace_file"] = timeline::JsonText(std::filesystem::path(place.name).filename().string());
  for (std::string& note : result.notes) {
    if (note.find(place.name) == std::string::npos) note = "rank " + std::to_string(info.rank) + ": " + note;
    notes_.push_back(Note(std::move(note)));
  }
  // Traces of different hosts count from different base times: convert them to the first one's before
  // clocks are compared.
  if (!base_ns_) base_ns_ = trace.base_ns;
  source_ = trace.source;
  const size_t in_graph = ArrivalsIn(info.graph);
  ranks_.push_back({std::move(info),
                    timeline::ArrivalsOf(trace, result.comm_exposed),
                    result.begin_ns,
                    result.end_ns,
                    trace.base_ns - *base_ns_,
                    in_graph,
                    {place}});
  KeepOrLetGo(ranks_.size() - 1);
  TakeSeries(ranks_.back().info.rank, std::move(result.series));
}

// The first ranks hold a place until all are known; of several recordings of a rank, only the earliest one's graph and
// step will be asked for.
void GatheredRanks::KeepOrLetGo(size_t recording) {
  const int rank = ranks_[recording].info.rank;
  if (holders_.size() < timeline::kMostKeptRanks) holders_.insert(rank);
  if (!holders_.contains(rank)) LetGo(&ranks_[recording].info);
  const auto begin_ns = [&](size_t i) { return ranks_[i].begin_ns + ranks_[i].base_shift_ns; };
  const auto [first, is_new] = first_of_.try_emplace(rank, recording);
  if (is_new) return;
  const bool earlier = begin_ns(recording) < begin_ns(first->second);
  LetGo(&ranks_[earlier ? first->second : recording].info);
  if (earlier) first->second = recording;
}

void GatheredRanks::TakeSeries(int rank, std::vector<record::Series> series) {
  if (!holders_.contains(rank)) return;
  for (record::Series& each : series) series_.emplace_back(rank, std::move(each));
}

// Ranks in order, on the clock of the first one's base time; the recordings of one process are one.
void GatheredRanks::Join() {
  for (Gathered& each : ranks_) {
    timeline::ShiftTimes(each.base_shift_ns, &each.info);
    timeline::ShiftTimes(each.base_shift_ns, &each.arrivals);
    each.begin_ns += each.base_shift_ns;
    each.end_ns += each.base_shift_ns;
  }
  std::stable_sort(ranks_.begin(), ranks_.end(), [](const Gathered& a, const Gathered& b) {
    return a.info.rank != b.info.rank ? a.info.rank < b.info.rank : a.begin_ns < b.begin_ns;
  });
  std::vector<Gathered> ranks;
  for (Gathered& each : ranks_) {
    if (ranks.empty() || ranks.back().info.rank != each.info.rank) {
      ranks.push_back(std::move(each));
      continue;
    }
    Gathered& rank = ranks.back();
    timeline::Append(std::move(each.info), &rank.info);
    timeline::Append(each.arrivals, &rank.arrivals);
    rank.end_ns = std::max(rank.end_ns, each.end_ns);
    std::ranges::move(each.places, std::back_inserter(rank.places));
  }
  ranks_ = std::move(ranks);
}

void GatheredRanks::Compare() {
  Join();
  for (Gathered& rank : ranks_) arrivals_.push_back(std::move(rank.arrivals));
  comparison_ = timeline::CompareRanks(arrivals_);
  for (const std::string& note : comparison_.notes) notes_.push_back(Note(note));
  if (ranks_.size() > timeline::kMostKeptRanks) Choose(timeline::RanksToKeep(InBrief(), comparison_));
}

std::vector<timeline::RankInBrief> GatheredRanks::InBrief() const {
  std::vector<timeline::RankInBrief> brief;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const std::vector<record::Step>& steps = ranks_[i].info.steps;
    timeline::RankInBrief& rank = brief.emplace_back();
    rank.in_graph = std::min(ranks_[i].in_graph, arrivals_[i].list.size());
    if (steps.empty()) continue;
    rank.begin_ns = steps.front().end_ns - steps.front().wall_ns + comparison_.ranks[i].shift_ns;
    rank.end_ns = steps.back().end_ns + comparison_.ranks[i].shift_ns;
  }
  return brief;
}

void GatheredRanks::Choose(const std::vector<size_t>& kept) {
  std::set<int> chosen;
  std::string numbers;
  for (const size_t i : kept) {
    const Gathered& rank = ranks_[i];
    chosen.insert(rank.info.rank);
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(rank.info.rank);
    if (!holders_.contains(rank.info.rank)) missing_.insert(rank.places.begin(), rank.places.end());
  }
  for (Gathered& rank : ranks_) {
    if (!chosen.contains(rank.info.rank)) LetGo(&rank.info);
  }
  std::erase_if(series_, [&](const auto& each) { return !chosen.contains(each.first); });
  holders_ = std::move(chosen);
  notes_.push_back(Note(
      "of the " + std::to_string(ranks_.size()) + " ranks, " + std::to_string(kept.size()) +
      " are kept in full (" + numbers +
      "): the first ones, and those that they wait for most. Of the others there are all sums, but no graph to "
      "run again, no step to look at and no counters"));
}

void GatheredRanks::TakeAgain(timeline::DeviceTrace& trace, const TracePlace& place) {
  if (missing_.erase(place) == 0) return;
  const auto rank = std::ranges::find_if(
      ranks_, [&](const Gathered& each) { return std::ranges::count(each.places, place) > 0; });
  trace.rank = rank->info.rank;
  timeline::RankResult again = Summarised(trace);
  TakeSeries(rank->info.rank, std::move(again.series));
  if (place != rank->places.front()) return;  // the graph and the step are those of the first recording
  timeline::ShiftTimes(trace.base_ns - *base_ns_, &again.info);
  rank->info.graph = std::move(again.info.graph);
  rank->info.timeline = std::move(again.info.timeline);
}

void GatheredRanks::Finish(record::Recording* recording, record::Stage* stage) && {
  recording->source = source_;
  recording->wall_offset_ns = base_ns_.value_or(0);
  for (const TracePlace& place : missing_) {
    notes_.push_back(Note("'" + place.name +
                          "' could not be read a second time: its rank is left out where steps "
                          "are run again or shown"));
    notes_.back().severity = Severity::kWarning;
  }
  std::ranges::move(notes_, std::back_inserter(stage->messages));
  for (auto& [rank, series] : series_) stage->series.push_back(std::move(series));
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const int64_t shift = comparison_.ranks[i].shift_ns;
    timeline::ApplyWaits(arrivals_[i], comparison_.ranks[i], &ranks_[i].info);
    timeline::ShiftTimes(shift, &ranks_[i].info);
    const int64_t begin = ranks_[i].begin_ns + shift;
    const int64_t end = ranks_[i].end_ns + shift;
    stage->begin_ns = i == 0 ? begin : std::min(stage->begin_ns, begin);
    stage->end_ns = i == 0 ? end : std::max(stage->end_ns, end);
    stage->ranks.push_back(std::move(ranks_[i].info));
  }
}

}  // namespace fullbore::ingest
