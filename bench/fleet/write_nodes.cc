// Writes a made run on many machines: ranks that meet in each step, and one machine whose GPUs are at a lower clock.
//
//   write_nodes DIRECTORY MACHINES RANKS SECONDS SLOW   DIRECTORY/made.fbr/node-N.fbr, with RANKS ranks each and steps of
//                                                       0.3 s; SLOW is the number of the slow machine, -1 for none.
//                                                       Prints the folder.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "record/metrics.h"
#include "record/run_writer.h"

namespace {

using namespace fullbore;
namespace fs = std::filesystem;
using record::Metric;
using record::Share;

struct Shape {
  int64_t machines = 0, ranks = 0, seconds = 0, slow = -1;
};

// What every rank computes in a step, so that all can wait for the last one.
class Step {
 public:
  Step(const Shape& shape, int64_t index) : random_(static_cast<uint64_t>(index)) {
    std::normal_distribution<double> noise(1, 0.02);
    for (int64_t rank = 0; rank < shape.machines * shape.ranks; ++rank) {
      const bool slow = rank / shape.ranks == shape.slow;
      own_ns_.push_back(static_cast<int64_t>(250e6 * (slow ? 1.3 : 1) * noise(random_)));
    }
    last_ns_ = *std::max_element(own_ns_.begin(), own_ns_.end());
  }
  int64_t own_ns(int64_t rank) const { return own_ns_[static_cast<size_t>(rank)]; }
  int64_t wall_ns() const { return last_ns_ + kTransferNs; }

 private:
  static constexpr int64_t kTransferNs = 10 * kNsPerMs;
  std::mt19937_64 random_;
  std::vector<int64_t> own_ns_;
  int64_t last_ns_ = 0;
};

record::Step StepOf(const Step& made, int64_t rank, int64_t index, int64_t end_ns) {
  record::Step step;
  step.index = index;
  step.end_ns = end_ns;
  step.wall_ns = made.wall_ns();
  step.samples = 32;
  step.batches = 1;
  const int64_t own_ns = made.own_ns(rank);
  step.share_ns[Index(Share::kForward)] = own_ns / 3;
  step.share_ns[Index(Share::kBackward)] = own_ns - own_ns / 3 - 5 * kNsPerMs;
  step.share_ns[Index(Share::kOptimizer)] = 5 * kNsPerMs;
  step.share_ns[Index(Share::kCommExposed)] = made.wall_ns() - own_ns;
  return step;
}

void Add(record::StepWindow& window, const record::Step& step) {
  window.end_ns = step.end_ns;
  window.steps += 1;
  window.samples += step.samples;
  window.min_wall_ns = window.steps == 1 ? step.wall_ns : std::min(window.min_wall_ns, step.wall_ns);
  window.max_wall_ns = std::max(window.max_wall_ns, step.wall_ns);
  for (size_t i = 0; i < record::kShareCount; ++i) window.share_ns[i] += step.share_ns[i];
}

// Of a machine that is busy training and short of nothing.
double UsualValue(const record::MetricInfo& info) {
  switch (info.metric) {
    case Metric::kCpuUtilization:
    case Metric::kCpuUser:
      return 0.2;
    case Metric::kGpuUtilization:
    case Metric::kGpuSmActive:
    case Metric::kGpuSmOccupancy:
    case Metric::kGpuTensorActive:
      return 0.85;
    case Metric::kGpuSmClock:
    case Metric::kGpuSmClockMax:
      return 1.75e9;
    case Metric::kMemoryTotal:
    case Metric::kMemoryAvailable:
      return 512e9;
    case Metric::kGpuMemoryTotal:
      return 80e9;
    case Metric::kGpuMemoryUsed:
      return 60e9;
    case Metric::kGpuTemperature:
      return 60;
    case Metric::kGpuPower:
      return 600;
    case Metric::kGpuPowerLimit:
      return 700;
    default:
      return 0;
  }
}

// All series of the table that a machine with eight GPUs has, once a second, each with noise around a value.
void WriteSeries(record::RunWriter& writer, const Shape& shape, int64_t machine, int64_t begin_ns) {
  std::mt19937_64 random(static_cast<uint64_t>(machine));
  std::normal_distribution<double> noise(1, 0.01);
  for (const record::MetricInfo& info : record::AllMetrics()) {
    const bool of_gpu = info.labels == "gpu";
    if (!of_gpu && !info.labels.empty()) continue;
    for (int gpu = 0; gpu < (of_gpu ? 8 : 1); ++gpu) {
      record::Labels labels;
      if (of_gpu) labels["gpu"] = std::to_string(gpu);
      double value = UsualValue(info);
      if (info.metric == Metric::kGpuSmClock && machine == shape.slow) value = 1.3e9;
      const record::SeriesKey key = record::KeyOf(info.metric, labels);
      for (int64_t second = 1; second <= shape.seconds; ++second)
        writer.AppendReading(static_cast<int>(info.metric), key, begin_ns + second * kNsPerSecond,
                             value * noise(random));
    }
  }
}

Result<void> WriteMachine(const std::string& folder, const Shape& shape, int64_t machine,
                          const std::vector<Step>& steps) {
  const int64_t begin_ns = (machine + 1) * 1'000 * kNsPerSecond;  // each booted at another time
  const std::string name = fmt::format("node-{}", machine);
  auto writer = record::RunWriter::Open(folder + "/" + name + ".fbr",
                                        {"made", "train", {"torchrun", "train.py"}, "/", {}}, begin_ns,
                                        1'700'000'000 * kNsPerSecond);
  if (!writer) return writer.error();
  writer->PutMachineFact("hostname", name);
  writer->PutMachineFact("cores", "64");
  for (int64_t rank = machine * shape.ranks; rank < (machine + 1) * shape.ranks; ++rank) {
    record::RankInfo info;
    info.rank = static_cast<int>(rank);
    info.device = fmt::format("cuda:{}", rank % shape.ranks);
    info.samples_known = true;
    writer->PutRank(info);
    int64_t now_ns = begin_ns;
    record::StepWindow window;
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto index = static_cast<int64_t>(i);
      if (window.steps == 0) window.begin_ns = now_ns, window.first_step = index;
      now_ns += steps[i].wall_ns();
      const record::Step step = StepOf(steps[i], rank, index, now_ns);
      Add(window, step);
      if (index < 1000 || index % 400 < 64) writer->AppendStep(info.rank, step);
      if (window.end_ns - window.begin_ns < kNsPerSecond) continue;
      writer->AppendWindow(info.rank, window);
      window = {};
    }
  }
  WriteSeries(*writer, shape, machine, begin_ns);
  const int64_t end_ns = begin_ns + shape.seconds * kNsPerSecond;
  return writer->Close(end_ns, record::StageState::kEnded, 0, false);
}

}  // namespace

int main(int argc, char** argv) {
  Shape shape;
  bool usable = argc == 6;
  int64_t* const numbers[] = {&shape.machines, &shape.ranks, &shape.seconds, &shape.slow};
  for (int i = 0; usable && i < 4; ++i) {
    const auto number = ParseInt(argv[i + 2]);
    usable = number && *number >= (i == 3 ? -1 : 1) && *number <= 1'000'000;
    if (usable) *numbers[i] = *number;
  }
  if (!usable) {
    fmt::print(stderr, "usage: write_nodes DIRECTORY MACHINES RANKS SECONDS SLOW\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/made.fbr";
  fs::create_directories(folder);
  std::vector<Step> steps;
  for (int64_t ns = 0; ns < shape.seconds * kNsPerSecond; ns += steps.back().wall_ns())
    steps.emplace_back(shape, static_cast<int64_t>(steps.size()));
  for (int64_t machine = 0; machine < shape.machines; ++machine) {
    if (auto written = WriteMachine(folder, shape, machine, steps); !written) {
      fmt::print(stderr, "write_nodes: {}\n", ToString(written.error()));
      return 1;
    }
  }
  fmt::print("{}\n", folder);
}
