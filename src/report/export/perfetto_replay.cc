#include <fmt/format.h>

#include <map>

#include "explain/replay/simulate.h"
#include "report/export/perfetto.h"

namespace fullbore::exporting {

using record::StepGraph;
using record::Work;

namespace {

int ReplayPid(int rank) { return 10 * (rank + 1) + 3; }

std::string NameOf(const StepGraph& graph, const StepGraph::Node& node) {
  if (node.name != 0) return graph.names[node.name];
  switch (node.work) {
    case Work::kLoader:
      return "data loader";
    case Work::kCheckpoint:
      return "checkpoint";
    case Work::kValidation:
      return "validation";
    case Work::kGarbageCollection:
      return "garbage collection";
    case Work::kAway:
      return "nothing recorded";
    case Work::kLaunch:
      return "launch";
    case Work::kBlockingCall:
      return "blocking call";
    case Work::kFetch:
      return "fetch";
    case Work::kHost:
    case Work::kReturn:
    case Work::kRoom:
    case Work::kDevice:
    case Work::kUnexplained:
    case Work::kStepEnd:
      return "work";
  }
  return "work";
}

}  // namespace

void PerfettoFile::AddReplay(const timeline::DeviceTrace& trace, const record::RankInfo& info,
                             const std::vector<int64_t>& numbers, replay::Ranks ranks, int64_t step,
                             const std::string& changes) {
  const StepGraph& changed = *ranks.front();
  const auto [begins, ends] = replay::TimesOf(ranks);
  const auto at = static_cast<size_t>(step - changed.first_step);
  const record::Step& recorded = info.steps[static_cast<size_t>(step)];
  const int64_t shift = recorded.end_ns - recorded.wall_ns - begins[changed.step_ends[at]];
  const int pid = ReplayPid(info.rank);
  const std::string process = fmt::format("rank {}, replayed with {}", info.rank, changes);

  const int steps = NewTrack(pid, process, "steps");
  for (size_t i = 0; i + 1 < changed.step_ends.size(); ++i) {
    const int64_t begin = begins[changed.step_ends[i]], end = begins[changed.step_ends[i + 1]];
    const record::Step& was = info.steps[static_cast<size_t>(changed.first_step) + i];
    Slice(pid, steps, StepName(was, numbers), begin + shift, end + shift,
          fmt::format(R"("recorded, in us":{})", static_cast<double>(was.wall_ns) / 1e3));
  }

  // Operations of one stream may overlap: each row takes what comes after its last.
  std::map<std::tuple<bool, uint16_t, int>, std::pair<int, int64_t>> rows;  // -> thread id, end of the last
  for (size_t i = 0; i < changed.nodes.size(); ++i) {
    const StepGraph::Node& node = changed.nodes[i];
    const int64_t begin = begins[i] + shift, end = ends[i] + shift;
    // Unexplained time is not work of anyone: it stays a gap.
    if (end <= begin || node.work == Work::kUnexplained || !Touches(begin, end)) continue;
    const bool device = node.work == Work::kDevice;
    int row = 0;
    auto place = rows.find({device, node.place, row});
    while (place != rows.end() && place->second.second > begin)
      place = rows.find({device, node.place, ++row});
    if (place == rows.end()) {
      const auto& of = device ? trace.streams : trace.threads;
      const std::string name = node.place < of.size() ? of[node.place] : std::to_string(node.place);
      const int tid = NewTrack(
          pid, process,
          fmt::format("{} {}{}", device ? "stream" : "thread", name, row > 0 ? " (overlapping)" : ""));
      place = rows.emplace(std::tuple(device, node.place, row), std::pair(tid, int64_t{0})).first;
    }
    place->second.second = end;
    Slice(pid, place->second.first, NameOf(changed, node), begin, end);
  }
}

}  // namespace fullbore::exporting
