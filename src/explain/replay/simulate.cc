#include "explain/replay/simulate.h"

#include <algorithm>

#include "base/time_limit.h"

namespace fullbore::replay {
namespace {

using record::StepGraph;

// Each rank runs on until it comes to a collective that others have yet to come to.
class Together {
 public:
  explicit Together(Ranks ranks) {
    uint32_t last_meeting = 0;
    int64_t first_ns = INT64_MAX;
    for (const StepGraph* graph : ranks) {
      first_ns = std::min(first_ns, graph->begin_ns);
      for (const StepGraph::Node& node : graph->nodes) last_meeting = std::max(last_meeting, node.meeting);
    }
    meetings_.resize(size_t{last_meeting} + 1);
    for (const StepGraph* graph : ranks) {
      for (const StepGraph::Node& node : graph->nodes) ++meetings_[node.meeting].awaited;
      ranks_.push_back({graph, graph->begin_ns - first_ns, {}, {}, false});
      ranks_.back().begins.reserve(graph->nodes.size());
      ranks_.back().ends.reserve(graph->nodes.size());
    }
  }

  Times Run() && {
    while (ranks_.front().ends.size() < ranks_.front().graph->nodes.size()) {
      bool moves = false;
      for (Rank& rank : ranks_) moves = RunOn(rank) || moves;
      if (!moves) GiveUpAMeeting();
    }
    return {std::move(ranks_.front().begins), std::move(ranks_.front().ends)};
  }

 private:
  struct Rank {
    const StepGraph* graph;
    int64_t start_ns;  // of its first node
    std::vector<int64_t> begins, ends;
    bool waits;  // the last of `begins` has no end yet
  };
  struct Meeting {
    uint32_t awaited = 0, there = 0;
    int64_t last_ns = 0;
  };

  // Whether the node has to meet another rank's.
  Meeting* MeetingOf(const StepGraph::Node& node) {
    Meeting& meeting = meetings_[node.meeting];
    return node.meeting == 0 || meeting.awaited < 2 ? nullptr : &meeting;
  }

  static int64_t BeginOf(const Rank& rank, size_t node) {
    const StepGraph& graph = *rank.graph;
    int64_t begin = graph.first_edge[node] == graph.first_edge[node + 1] ? rank.start_ns : INT64_MIN;
    for (uint32_t e = graph.first_edge[node]; e < graph.first_edge[node + 1]; ++e) {
      const StepGraph::Edge& edge = graph.edges[e];
      begin = std::max(begin, (edge.from_begin ? rank.begins : rank.ends)[edge.from] + edge.lag_ns);
    }
    return std::max(begin, rank.start_ns);
  }

  // False if it has come nowhere.
  bool RunOn(Rank& rank) {
    TimeLimit::Check();
    bool moves = false;
    for (size_t i = rank.ends.size(); i < rank.graph->nodes.size(); ++i) {
      const StepGraph::Node& node = rank.graph->nodes[i];
      Meeting* meeting = MeetingOf(node);
      if (!rank.waits) {
        rank.begins.push_back(BeginOf(rank, i));
        moves = true;
        if (meeting != nullptr) {
          meeting->last_ns = std::max(meeting->last_ns, rank.begins.back());
          ++meeting->there;
        }
      }
      rank.waits = meeting != nullptr && meeting->there < meeting->awaited;
      if (rank.waits) return moves;
      const int64_t own_ns = std::max<int64_t>(0, node.duration_ns - node.wait_ns);
      rank.ends.push_back(meeting != nullptr ? meeting->last_ns + own_ns
                                             : rank.begins.back() + node.duration_ns);
      moves = true;
    }
    return moves;
  }

  // Ranks that come to two collectives in another order (on two streams) would wait for each other for ever. The
  // rank that has waited longest goes on with those that are there.
  void GiveUpAMeeting() {
    const Rank* first = nullptr;
    for (const Rank& rank : ranks_) {
      if (rank.waits && (first == nullptr || rank.begins.back() < first->begins.back())) first = &rank;
    }
    Meeting& meeting = *MeetingOf(first->graph->nodes[first->ends.size()]);
    meeting.awaited = std::max<uint32_t>(2, meeting.there);
    meeting.there = meeting.awaited;
  }

  std::vector<Rank> ranks_;
  std::vector<Meeting> meetings_;
};

}  // namespace

std::vector<int64_t> Begins(const StepGraph& graph) {
  std::vector<int64_t> begins(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    int64_t begin = 0;
    for (uint32_t e = graph.first_edge[i]; e < graph.first_edge[i + 1]; ++e) {
      const auto& edge = graph.edges[e];
      const int64_t from = begins[edge.from] + (edge.from_begin ? 0 : graph.nodes[edge.from].duration_ns);
      begin = std::max(begin, from + edge.lag_ns);
    }
    begins[i] = begin;
  }
  return begins;
}

Times TimesOf(Ranks ranks) {
  if (ranks.size() > 1) return Together(ranks).Run();
  Times times{Begins(*ranks.front()), {}};
  for (size_t i = 0; i < times.begins.size(); ++i)
    times.ends.push_back(times.begins[i] + ranks.front()->nodes[i].duration_ns);
  return times;
}

double StepNs(const StepGraph& graph, const std::vector<int64_t>& begins) {
  if (graph.step_ends.size() < 2) return 0;
  const int64_t span = begins[graph.step_ends.back()] - begins[graph.step_ends.front()];
  return static_cast<double>(span) / static_cast<double>(graph.step_ends.size() - 1);
}

}  // namespace fullbore::replay
