// The first law and the speed of the replay: for each rank of some traces, how far the unchanged graph is from the
// recorded step, what of it is unexplained, and how fast it runs.
//
//   build/release/bench/replay_trace TRACE...
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "explain/ingest/ingest.h"
#include "explain/replay/predict.h"
#include "explain/replay/simulate.h"

namespace {

using namespace fullbore;

template <typename Work>
double SecondsOf(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Report(const std::string& name, const record::StepGraph& graph) {
  constexpr int kRounds = 20;
  const double unexplained =
      replay::PerStepNs(graph, [](const auto& node) { return node.work == record::Work::kUnexplained; });
  double sum_ns = 0;
  const double simulate_s = SecondsOf([&] {
    for (int i = 0; i < kRounds; ++i) sum_ns += replay::StepNs(graph);
  });
  size_t rungs = 0;
  const double ladder_s = SecondsOf([&] { rungs = replay::Ladder(graph).size(); });
  const double step_ns = sum_ns / kRounds;
  fmt::print("{:<44} {:9.3f} {:9.3f} {:+8.3f} {:8.3f} {:8} {:9} {:8.0f} {:8.0f} ({} rungs)\n", name,
             graph.recorded_step_ns / 1e6, step_ns / 1e6, 100 * (step_ns / graph.recorded_step_ns - 1),
             100 * unexplained / step_ns, graph.assumed, graph.nodes.size(),
             kRounds * static_cast<double>(graph.nodes.size()) / simulate_s / 1e6, 1e3 * ladder_s, rungs);
}

}  // namespace

int main(int argc, char** argv) {
  fmt::print("{:<44} {:>9} {:>9} {:>8} {:>8} {:>8} {:>9} {:>8} {:>8}\n", "", "step ms", "replayed", "error %",
             "unexpl %", "assumed", "nodes", "M/s", "ladder ms");
  for (const std::string& path : std::vector<std::string>(argv + 1, argv + argc)) {
    const auto recording = ingest::ReadTraces({path});
    if (!recording) {
      fmt::print(stderr, "{}\n", ToString(recording.error()));
      return 1;
    }
    for (const record::RankInfo& rank : recording->stages.at(0).ranks) {
      const std::string name = path.substr(path.rfind('/') + 1);
      if (rank.graph) Report(fmt::format("{} rank {}", name, rank.rank), *rank.graph);
    }
  }
  return 0;
}
