// What stays of the traces of a run's ranks, which are read one after the other: of each its sums and when it came to
// its collectives; of few of them also what grows with the events of a step (record::StepGraph, StepTimeline, counters).
//
//   GatheredRanks ranks;
//   ... ranks.Take(trace, place) ...             // each trace
//   ranks.Compare();
//   ... ranks.TakeAgain(trace, place) ...        // those that are missing()
//   std::move(ranks).Finish(&recording, &stage);
//
// Which ranks these are (timeline::RanksToKeep) shows only when all have been read, so some have to be read twice.
// Keeping on the way those that may be needed does not do: how long a rank is waited for depends on the clocks and on
// the last one to come, of which the next trace may tell.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "explain/ingest/trace_reader.h"
#include "record/recording.h"
#include "timeline/device/kept_ranks.h"
#include "timeline/device/rank.h"
#include "timeline/device/ranks.h"
#include "timeline/device/trace.h"

namespace fullbore::ingest {

class GatheredRanks {
 public:
  // Of one process the recordings may come in any order. `trace` has its rank.
  void Take(timeline::DeviceTrace& trace, const TracePlace& place);

  // Call once, after the last one: joins the recordings of each rank, compares the ranks and lets all but a few go.
  void Compare();
  // What is to be read again; nothing of timeline::kMostKeptRanks ranks or fewer.
  const std::set<TracePlace>& missing() const { return missing_; }
  void TakeAgain(timeline::DeviceTrace& trace, const TracePlace& place);

  void Finish(record::Recording* recording, record::Stage* stage) &&;

 private:
  // One recording, or from Compare() on all of one rank.
  struct Gathered {
    record::RankInfo info;
    timeline::Arrivals arrivals;  // until Compare()
    int64_t begin_ns = 0, end_ns = 0;
    int64_t base_shift_ns = 0;  // to the base time of the first trace
    size_t in_graph = 0;        // of its arrivals
    std::vector<TracePlace> places = {};
  };

  timeline::RankResult Summarised(const timeline::DeviceTrace& trace);
  void KeepOrLetGo(size_t recording);
  void TakeSeries(int rank, std::vector<record::Series> series);
  void Join();
  std::vector<timeline::RankInBrief> InBrief() const;
  void Choose(const std::vector<size_t>& kept);

  std::vector<Gathered> ranks_;
  std::vector<timeline::Arrivals> arrivals_;  // from Compare() on, of the same ranks
  std::map<int, size_t> first_of_;  // by rank, its earliest recording so far, whose graph is the rank's
  std::set<int> holders_;           // ranks whose graphs are here
  std::vector<std::pair<int, record::Series>> series_;  // of the holders, with their ranks
  std::set<TracePlace> missing_;
  timeline::RankComparison comparison_;
  std::vector<record::Message> notes_;
  std::string source_;
  std::optional<int64_t> base_ns_;
  std::optional<size_t> shown_;  // the same step of all ranks
};

}  // namespace fullbore::ingest
