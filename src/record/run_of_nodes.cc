#include "record/run_of_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "record/limits.h"
#include "record/metrics.h"

namespace fullbore::record {

namespace fs = std::filesystem;

namespace {

// What is kept of ranks on machines other than the first: with 300 bytes a step and 230 a window, 75 MB of a thousand.
constexpr size_t kMostSteps = 200'000, kLeastStepsOfRank = 32, kMostWindowsOfRank = 64;
constexpr int64_t kStepsTogether = 8;              // what is kept of steps are stretches of so many
constexpr std::string_view kTaskOfNode = "-task";  // measure/collect/node_of_run.h
constexpr size_t kMostMessages = 5;                // of a machine
// A recorder writes once a second; one that is silent for so long while another goes on is gone.
constexpr int64_t kSilentNs = 10 * kNsPerSecond;

// By name; with a folder of too many, the first of them.
std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.path().extension() == kRunSuffix && entry.is_regular_file(ignored))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.size() > kMaxNodes) files.resize(kMaxNodes);
  return files;
}

// Of "gpu-3-task2.fbr", a task of several on that machine: "gpu-3".
std::string NodeNameOf(const std::string& file) {
  const std::string stem = fs::path(file).stem().string();
  const size_t task = stem.rfind(kTaskOfNode);
  if (task == std::string::npos || task == 0 ||
      !ParseInt(std::string_view(stem).substr(task + kTaskOfNode.size())))
    return stem;
  return stem.substr(0, task);
}

Error NothingIn(const std::string& folder) {
  return {ErrorCode::kNotFound, fmt::format("the run '{}' holds no file of any machine", folder),
          "remove the folder, or run its command again"};
}

// The same steps of each rank, whatever else its recorder kept: by their numbers.
void KeepFewer(std::vector<Step>& steps, size_t most) {
  for (int64_t every = 2; steps.size() > most && every <= kMaxCount; every *= 2)
    std::erase_if(steps, [&](const Step& step) { return step.index / kStepsTogether % every != 0; });
}

StepWindow Sum(StepWindow sum, const StepWindow& next) {
  sum.end_ns = next.end_ns;
  sum.steps += next.steps;
  sum.samples += next.samples;
  sum.min_wall_ns = std::min(sum.min_wall_ns, next.min_wall_ns);
  sum.max_wall_ns = std::max(sum.max_wall_ns, next.max_wall_ns);
  for (size_t i = 0; i < kShareCount; ++i) sum.share_ns[i] += next.share_ns[i];
  for (size_t i = 0; i < kHostOtherCount; ++i) sum.host_other_ns[i] += next.host_other_ns[i];
  return sum;
}

void SumUp(std::vector<StepWindow>& windows, size_t most) {
  const size_t together = (windows.size() + most - 1) / most;
  if (together < 2) return;
  std::vector<StepWindow> sums;
  for (size_t i = 0; i < windows.size(); ++i) {
    if (i % together == 0)
      sums.push_back(windows[i]);
    else
      sums.back() = Sum(sums.back(), windows[i]);
  }
  windows = std::move(sums);
}

std::vector<Node::Mean> MeansOf(const Stage& stage) {
  int64_t begin_ns = stage.end_ns, end_ns = stage.begin_ns;
  for (const RankInfo& rank : stage.ranks) {
    if (rank.windows.empty()) continue;
    begin_ns = std::min(begin_ns, rank.windows.front().begin_ns);
    end_ns = std::max(end_ns, rank.windows.back().end_ns);
  }
  begin_ns += (end_ns - begin_ns) / 4;
  std::vector<Node::Mean> means;
  for (const Series& series : stage.series) {
    double sum = 0;
    int64_t count = 0;
    for (const Reading& reading : series.readings) {
      if (reading.t_ns <= begin_ns || reading.t_ns > end_ns) continue;
      sum += reading.value;
      ++count;
    }
    if (count > 0) means.push_back({series.key, sum / static_cast<double>(count)});
  }
  return means;
}

Node NodeOf(const Recording& recording, const Stage& stage) {
  Node node;
  node.name = NodeNameOf(recording.path);
  node.path = recording.path;
  node.machine = recording.machine;
  node.means = MeansOf(stage);
  node.end_ns = stage.end_ns;
  return node;
}

// A machine as it is kept beside the first one.
struct Machine {
  Recording recording;
  std::vector<Node> nodes;  // of each of its stages

  int LowestRank() const {
    int lowest = INT32_MAX;
    for (const Stage& stage : recording.stages) {
      for (const RankInfo& rank : stage.ranks) lowest = std::min(lowest, rank.rank);
    }
    return lowest;
  }
};

Machine MachineOf(Recording recording) {
  Machine machine{std::move(recording), {}};
  for (const Stage& stage : machine.recording.stages)
    machine.nodes.push_back(NodeOf(machine.recording, stage));
  return machine;
}

void Reduce(Machine& machine, size_t files) {
  for (Stage& stage : machine.recording.stages) {
    stage.series.clear();
    stage.processes.clear();
    stage.device_windows.clear();
    const size_t ranks = std::max<size_t>(1, stage.ranks.size() * files);
    for (RankInfo& rank : stage.ranks) {
      KeepFewer(rank.steps, std::max(kLeastStepsOfRank, kMostSteps / ranks));
      rank.steps.shrink_to_fit();
      SumUp(rank.windows, kMostWindowsOfRank);
    }
  }
}

// Clocks may say anything: no time leaves the bounds of those that are read.
int64_t Moved(int64_t t_ns, int64_t by_ns) { return std::clamp(t_ns + by_ns, -kMaxNs, kMaxNs); }

void Move(Stage& stage, Node& node, int64_t by_ns) {
  by_ns = std::clamp(by_ns, -kMaxNs, kMaxNs);
  for (int64_t* t_ns : {&stage.begin_ns, &stage.end_ns, &node.end_ns}) *t_ns = Moved(*t_ns, by_ns);
  for (RankInfo& rank : stage.ranks) {
    for (Step& step : rank.steps) step.end_ns = Moved(step.end_ns, by_ns);
    for (StepWindow& window : rank.windows) {
      window.begin_ns = Moved(window.begin_ns, by_ns);
      window.end_ns = Moved(window.end_ns, by_ns);
    }
  }
  for (Message& message : stage.messages) {
    if (message.t_ns) message.t_ns = Moved(*message.t_ns, by_ns);
  }
}

// Of the clocks of two walls; offsets of different centuries are nonsense, and their difference would not fit.
int64_t Difference(int64_t a_ns, int64_t b_ns) {
  int64_t difference_ns = 0;
  return __builtin_sub_overflow(a_ns, b_ns, &difference_ns) ? 0 : difference_ns;
}

int64_t Middle(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// By how much the clock of a rank is ahead of another's, by the ends of their steps: nothing where these are not at
// the same time, as they are where each step ends with a collective.
int64_t AheadNs(const RankInfo& rank, const RankInfo& of) {
  std::vector<int64_t> ahead, walls;
  auto other = of.steps.begin();
  for (const Step& step : rank.steps) {
    while (other != of.steps.end() && other->index < step.index) ++other;
    if (other == of.steps.end() || other->index != step.index) continue;
    ahead.push_back(step.end_ns - other->end_ns);
    walls.push_back(step.wall_ns);
  }
  constexpr size_t kFew = 8;
  if (ahead.size() < kFew) return 0;
  const int64_t middle = Middle(ahead);
  for (int64_t& each : ahead) each = std::abs(each - middle);
  return Middle(ahead) < Middle(walls) / 4 ? middle : 0;
}

void AddMessages(const std::string& name, const Stage& from, Stage& to) {
  size_t added = 0;
  for (const Message& message : from.messages) {
    if (message.severity == Severity::kInfo || ++added > kMostMessages) continue;
    to.messages.push_back({message.t_ns, message.severity, message.source, name + ": " + message.text});
  }
  if (from.exit_status.value_or(0) != 0) {
    to.messages.push_back({from.end_ns, Severity::kWarning, "reader",
                           fmt::format("{}: the command ended with status {}", name, *from.exit_status)});
  }
}

// Tasks of one machine that were recorded apart: it is the same machine, of which they use more.
void AddTask(const Node& task, Node& node) {
  for (const Node::Mean& more : task.means) {
    if (!IsOf(more.key, Metric::kProcessCpu)) continue;
    const auto same = std::ranges::find(node.means, more.key, &Node::Mean::key);
    if (same == node.means.end())
      node.means.push_back(more);
    else
      same->value += more.value;
  }
  node.end_ns = std::max(node.end_ns, task.end_ns);
  node.cut_off = node.cut_off && task.cut_off;
}

void Join(Machine& machine, const Recording& first, Stage& into) {
  for (size_t i = 0; i < machine.nodes.size(); ++i) {
    Stage& stage = machine.recording.stages[i];
    if (stage.name != into.name) continue;
    Node& node = machine.nodes[i];
    Move(stage, node, Difference(machine.recording.wall_offset_ns, first.wall_offset_ns));
    if (!stage.ranks.empty() && !into.ranks.empty())
      Move(stage, node, -AheadNs(stage.ranks.front(), into.ranks.front()));
    AddMessages(node.name, stage, into);
    into.out_of_memory = into.out_of_memory || stage.out_of_memory;
    if (stage.exit_status.value_or(0) != 0 && into.exit_status.value_or(0) == 0)
      into.exit_status = stage.exit_status;
    node.cut_off = stage.state == StageState::kRunning;
    const auto known = std::ranges::find(into.nodes, node.name, &Node::name);
    const auto place = static_cast<int>(known - into.nodes.begin());
    for (RankInfo& rank : stage.ranks) {
      if (into.ranks.size() == kMaxRanksOfNodes) break;
      rank.node = place;
      into.ranks.push_back(std::move(rank));
    }
    if (known != into.nodes.end())
      AddTask(node, *known);
    else
      into.nodes.push_back(std::move(node));
    stage.name.clear();  // joined
    return;
  }
}

void SayWhoIsGone(Stage& stage) {
  int64_t newest_ns = 0;
  bool runs = false;
  for (const Node& node : stage.nodes) newest_ns = std::max(newest_ns, node.end_ns);
  for (Node& node : stage.nodes) {
    const bool open = node.cut_off;
    node.cut_off = open && newest_ns - node.end_ns > kSilentNs;
    runs = runs || (open && !node.cut_off);
    if (!node.cut_off) continue;
    stage.messages.push_back({node.end_ns, Severity::kWarning, "reader",
                              fmt::format("{}: nothing is recorded of it since {:.0f} s before the end",
                                          node.name, static_cast<double>(newest_ns - node.end_ns) / 1e9)});
  }
  stage.end_ns = std::max(stage.end_ns, newest_ns);  // the others go on when the first one is gone
  stage.state = runs ? StageState::kRunning : StageState::kEnded;
}

// The others' stages of a name that the first one lacks: master.sh on one, worker.sh on the others.
void SayWhatIsLeft(const Machine& machine, Stage& stage) {
  for (size_t i = 0; i < machine.nodes.size(); ++i) {
    const std::string& name = machine.recording.stages[i].name;
    if (name.empty()) continue;
    stage.messages.push_back(
        {std::nullopt, Severity::kWarning, "reader",
         fmt::format("{}: its stage '{}' is left out, for the first machine has none of that name",
                     NodeNameOf(machine.recording.path), name)});
  }
}

// Two files with the same rank are not of one run: the first one counts.
void SortRanks(Stage& stage) {
  std::stable_sort(stage.ranks.begin(), stage.ranks.end(),
                   [](const RankInfo& a, const RankInfo& b) { return a.rank < b.rank; });
  const auto same = [](const RankInfo& a, const RankInfo& b) { return a.rank == b.rank; };
  const auto twice = std::unique(stage.ranks.begin(), stage.ranks.end(), same);
  if (twice == stage.ranks.end()) return;
  stage.messages.push_back({std::nullopt, Severity::kWarning, "reader",
                            fmt::format("{} ranks are in the files of two machines: the first one's count",
                                        stage.ranks.end() - twice)});
  stage.ranks.erase(twice, stage.ranks.end());
}

Recording Together(Machine first, std::vector<Machine> others, const std::vector<std::string>& unread) {
  std::sort(others.begin(), others.end(),
            [](const Machine& a, const Machine& b) { return a.LowestRank() < b.LowestRank(); });
  Recording run = std::move(first.recording);
  for (size_t i = 0; i < run.stages.size(); ++i) {
    Stage& stage = run.stages[i];
    first.nodes[i].cut_off = stage.state == StageState::kRunning;
    stage.nodes.push_back(std::move(first.nodes[i]));
    for (Machine& machine : others) Join(machine, run, stage);
    SayWhoIsGone(stage);
    SortRanks(stage);
    for (const std::string& text : unread)
      stage.messages.push_back({std::nullopt, Severity::kWarning, "reader", "left out: " + text});
  }
  for (const Machine& machine : others) SayWhatIsLeft(machine, run.stages.back());
  return run;
}

}  // namespace

bool IsRunOfNodes(const std::string& path) {
  std::error_code ignored;
  const size_t end = path.find_last_not_of('/');  // a shell completes the name of a folder with one
  return end != std::string::npos && std::string_view(path).substr(0, end + 1).ends_with(kRunSuffix) &&
         fs::is_directory(path, ignored);
}

bool HoldsNothing(const std::string& folder) { return FilesIn(folder).empty(); }

Result<Recording> ReadRunOfNodes(const std::string& folder, ReadNode read, int64_t window_ns) {
  const std::vector<std::string> files = FilesIn(folder);
  std::optional<Machine> first;
  std::vector<Machine> others;
  std::vector<std::string> unread;
  std::optional<std::map<std::string, std::string>> tags;
  for (const std::string& file : files) {
    auto recording = read(file, window_ns);
    if (!recording) {
      unread.push_back(recording.error().text);
      continue;
    }
    if (!tags) tags = recording->tags;
    Machine machine = MachineOf(std::move(*recording));
    if (!first || machine.LowestRank() < first->LowestRank()) {
      if (first) std::swap(*first, machine);
      if (!first) {
        first = std::move(machine);
        continue;
      }
    }
    Reduce(machine, files.size());
    others.push_back(std::move(machine));
  }
  if (!first) {
    if (unread.empty()) return NothingIn(folder);
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("no machine's file in '{}' can be read: {}", folder, unread.front()), ""};
  }
  Recording run = Together(std::move(*first), std::move(others), unread);
  run.path = folder;
  run.tags = *tags;
  return run;
}

Result<RunSummary> ReadSummaryOfNodes(const std::string& folder) {
  std::optional<RunSummary> all;
  const auto offset_ns = [](const RunSummary& run) {
    return Difference(run.wall_begin_ns, run.stages.front().begin_ns);
  };
  for (const std::string& file : FilesIn(folder)) {
    auto summary = ReadRunSummary(file);
    if (!summary) continue;
    if (!all) {
      all = std::move(*summary);
      all->path = folder;
      continue;
    }
    all->steps = std::min(all->steps + summary->steps, kMaxCount);
    all->bytes += summary->bytes;
    const int64_t by_ns = Difference(offset_ns(*summary), offset_ns(*all));
    for (const Stage& stage : summary->stages) {
      const auto same = std::ranges::find(all->stages, stage.name, &Stage::name);
      if (same == all->stages.end()) continue;
      same->end_ns = std::max(same->end_ns, Moved(stage.end_ns, std::clamp(by_ns, -kMaxNs, kMaxNs)));
      if (stage.state == StageState::kRunning) same->state = StageState::kRunning;
      if (stage.exit_status.value_or(0) != 0) same->exit_status = stage.exit_status;
      same->out_of_memory = same->out_of_memory || stage.out_of_memory;
    }
  }
  if (!all) return NothingIn(folder);
  return std::move(*all);
}

Result<std::string> FileWithTagsOf(const std::string& folder) {
  for (const std::string& file : FilesIn(folder)) {
    if (ReadRunSummary(file).ok()) return file;
  }
  return NothingIn(folder);
}

}  // namespace fullbore::record
