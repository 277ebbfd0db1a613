// How large the run file of some hours is: the series that this machine and 8 fake GPUs really have, at the
// recorder's rates, each value a random walk with steps of a few per cent; ranks with 50 ms steps.
// Pessimistic: in reality many series do not change for minutes.
//
//   run_size [DIRECTORY [HOURS [RANKS]]]   prints one JSON object: bytes in total, by table and by probe. Of an hour
//                                          and one rank; with HOURS, the file stays: DIRECTORY/hours.fbr
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "measure/probe/process/process_probe.h"
#include "measure/probe/registry.h"
#include "record/database.h"
#include "record/run_writer.h"

namespace {

using namespace fullbore;
namespace fs = std::filesystem;

constexpr int64_t kHourNs = 3600 * kNsPerSecond;
constexpr int64_t kMostHours = 24 * 365;
constexpr int kMostRanks = 1024;
constexpr int64_t kFineForNs = 600 * kNsPerSecond;  // as measure/collect/recorder.cc
constexpr double kNoise = 0.03;                     // of the value, per reading

// What a probe delivers in one round, to be repeated with noise.
class KeySink : public probe::Sink {
 public:
  void Read(const record::SeriesKey& key, int64_t, double value) override { values[key] = value; }
  void Say(record::Severity, std::string_view, std::string_view) override {}
  void SetMachineFact(std::string_view, std::string_view) override {}

  std::map<record::SeriesKey, double> values;
};

struct Group {
  std::string name;
  bool slow = false;
  std::map<record::SeriesKey, double> values;
};

std::vector<Group> RealSeries() {
  std::vector<Group> groups;
  const pid_t command = fork();
  if (command == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pause();
    _exit(0);
  }
  probe::ProbeSet set = probe::MakeProbes({"", command, "bench"});
  set.processes->SetRole(command, "trainer", 0);
  for (int round = 0; round < 3; ++round) {
    if (round > 0) std::this_thread::sleep_for(std::chrono::seconds(1));  // rates need time to pass
    for (size_t i = 0; i < set.probes.size(); ++i) {
      KeySink sink;
      set.probes[i]->Sample(MonotonicNs(), sink);
      if (round == 0)
        groups.push_back(
            {std::string(set.probes[i]->name()), set.probes[i]->rate() == probe::Rate::kSlow, {}});
      groups[i].values.insert(sink.values.begin(), sink.values.end());
    }
  }
  kill(command, SIGKILL);
  waitpid(command, nullptr, 0);
  return groups;
}

class Training {
 public:
  Training(record::RunWriter writer, int64_t hours, int ranks)
      : writer_(std::move(writer)), groups_(RealSeries()), end_ns_(hours * kHourNs), ranks_(ranks) {}

  void Record() {
    for (int64_t t_ns = 0; t_ns < end_ns_;) {
      const bool fine = t_ns < kFineForNs;
      const bool whole_second = t_ns % kNsPerSecond == 0;
      for (size_t i = 0; i < groups_.size(); ++i) {
        if (!groups_[i].slow || whole_second) Sample(static_cast<int>(i), t_ns);
      }
      if (whole_second && t_ns % ((fine ? 1 : 5) * kNsPerSecond) == 0) {
        for (int rank = 0; rank < ranks_; ++rank) Window(rank, t_ns, fine ? 1 : 5);
      }
      if (whole_second) (void)writer_.Flush(t_ns);
      t_ns += fine ? kNsPerSecond / 5 : kNsPerSecond;
    }
    (void)writer_.Close(end_ns_, record::StageState::kEnded, 0, false);
  }
  const std::vector<Group>& groups() const { return groups_; }

 private:
  double Noise() { return std::normal_distribution<double>(0, kNoise)(random_); }

  void Sample(int group, int64_t t_ns) {
    for (auto& [key, value] : groups_[static_cast<size_t>(group)].values)
      writer_.AppendReading(group, key, t_ns, value * (1 + Noise()));
  }

  void Window(int rank, int64_t t_ns, int64_t seconds) {
    constexpr int64_t kStepNs = 50 * kNsPerMs;
    record::StepWindow window;
    window.begin_ns = t_ns;
    window.end_ns = t_ns + seconds * kNsPerSecond;
    window.steps = window.end_ns / kStepNs - t_ns / kStepNs;
    window.first_step = t_ns / kStepNs;
    window.samples = 32 * window.steps;
    for (int64_t& share : window.share_ns)
      share = static_cast<int64_t>(1e8 * static_cast<double>(seconds) * (1 + Noise()));
    writer_.AppendWindow(rank, window);
    const bool stretch = t_ns % (120 * kNsPerSecond) == 0;
    const int64_t kept = t_ns < 100 * kNsPerSecond ? window.steps : stretch ? 64 : 0;
    for (int64_t i = 0; i < kept; ++i) {
      record::Step step;
      step.index = window.first_step + i;
      step.end_ns = t_ns + i * kStepNs;
      step.wall_ns = static_cast<int64_t>(static_cast<double>(kStepNs) * (1 + Noise()));
      step.samples = 32;
      for (int64_t& share : step.share_ns) share = static_cast<int64_t>(5e6 * (1 + Noise()));
      writer_.AppendStep(rank, step);
    }
  }

  record::RunWriter writer_;
  std::vector<Group> groups_;
  const int64_t end_ns_;
  const int ranks_;
  std::mt19937_64 random_{1};
};

int64_t Sum(record::Database& database, const std::string& sql) {
  auto statement = database.Prepare(sql);
  if (!statement || !statement->Next()) return 0;
  return statement->Int(0);
}

}  // namespace

int main(int argc, char** argv) {
  const bool keep = argc > 2;
  const auto hours = keep ? ParseInt(argv[2]) : 1;
  const auto ranks = argc > 3 ? ParseInt(argv[3]) : 1;
  if (argc > 4 || !hours || *hours < 1 || *hours > kMostHours || !ranks || *ranks < 1 ||
      *ranks > kMostRanks) {
    fmt::print(stderr, "usage: run_size [DIRECTORY [HOURS [RANKS]]]\n");
    return 2;
  }
  const fs::path path = fs::path(argc > 1 ? argv[1] : fs::temp_directory_path().string()) / "hours.fbr";
  fs::remove(path);
  auto writer = record::RunWriter::Open(path, {"hours", "train", {"python", "train.py"}, "/", {}}, 0, 0);
  if (!writer) {
    fmt::print(stderr, "run_size: {}\n", ToString(writer.error()));
    return 1;
  }
  Training training(std::move(*writer), *hours, static_cast<int>(*ranks));
  training.Record();
  nlohmann::ordered_json said = {{"bytes", fs::file_size(path)}};
  auto database = record::Database::OpenForReading(path);
  if (!database) return 1;
  for (const char* table : {"readings", "step", "step_window"})
    said["tables"][table] = Sum(*database, fmt::format("SELECT sum(length(data)) FROM {}", table));
  for (size_t i = 0; i < training.groups().size(); ++i) {
    const Group& group = training.groups()[i];
    said["probes"][group.name] = {
        {"series", group.values.size()},
        {"bytes", Sum(*database, fmt::format("SELECT sum(length(data)) FROM readings WHERE probe = {}", i))}};
  }
  if (!keep) fs::remove(path);
  fmt::print("{}\n", said.dump(2));
}
