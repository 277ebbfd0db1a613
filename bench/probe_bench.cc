// What recording the machine costs: all probes, 8 GPUs played by the fake NVML, 200 real processes in the
// command's process tree. The target is at most 1 % of one core at the default rates: five fast rounds and
// one slow round a second.
//
// The cost of calls into the real NVML is not included.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/testing/source_directory.h"
#include "measure/probe/registry.h"

namespace fullbore::probe {
namespace {

constexpr int kProcesses = 200;
constexpr int kFastRoundsPerSecond = 5;

// A command that has started 200 sleeping processes.
class Command {
 public:
  Command() {
    int ready[2];
    if (pipe(ready) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (int i = 1; i < kProcesses; ++i) {
        if (fork() == 0) {
          prctl(PR_SET_PDEATHSIG, SIGKILL);
          execlp("sleep", "sleep", "600", static_cast<char*>(nullptr));
          _exit(127);
        }
      }
      if (write(ready[1], "r", 1) != 1) _exit(1);
      pause();
      _exit(0);
    }
    char byte;
    if (read(ready[0], &byte, 1) != 1) std::abort();
    close(ready[0]);
    close(ready[1]);
  }
  ~Command() {
    kill(pid_, SIGKILL);  // its children go with it
    waitpid(pid_, nullptr, 0);
  }
  int64_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// As expensive as the recorder's: a look-up and an append.
class CountingSink : public Sink {
 public:
  void Read(const record::SeriesKey& key, int64_t t_ns, double value) override {
    series_[key].push_back({t_ns, value});
    ++readings;
  }
  void Say(record::Severity, std::string_view, std::string_view) override {}
  void SetMachineFact(std::string_view, std::string_view) override {}
  size_t series_count() const { return series_.size(); }

  int64_t readings = 0;

 private:
  std::map<record::SeriesKey, std::vector<record::Reading>> series_;
};

struct Cost {
  int64_t fast_ns = 0, slow_ns = 0;
  std::map<std::string, int64_t> ns_by_probe;
};

// The fake's clock, so that GPM's samples are as far apart as in a real run.
void (*FakeTime())(double) {
  void* const library = dlopen(FULLBORE_FAKE_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library != nullptr ? dlsym(library, "fakeNvmlSetTime") : nullptr;
  if (symbol == nullptr) std::abort();
  return reinterpret_cast<void (*)(double)>(symbol);
}

// One second of recording. The probes get the times of the real rate without anybody waiting for the clock,
// so what is not due (PSS, say) is as rare as in a real run.
void SampleOneSecond(ProbeSet& set, int64_t& t_ns, Sink& sink, Cost& cost) {
  for (int round = 0; round < kFastRoundsPerSecond; ++round) {
    static const auto set_fake_time = FakeTime();
    t_ns += kNsPerSecond / kFastRoundsPerSecond;
    set_fake_time(static_cast<double>(t_ns) / 1e9);
    for (const auto& probe : set.probes) {
      const bool slow = probe->rate() == Rate::kSlow;
      if (slow && round != 0) continue;
      const int64_t begin_ns = ThreadCpuNs();
      probe->Sample(t_ns, sink);
      const int64_t ns = ThreadCpuNs() - begin_ns;
      (slow ? cost.slow_ns : cost.fast_ns) += ns;
      cost.ns_by_probe[std::string(probe->name())] += ns;
    }
  }
}

void RecordsASecond(benchmark::State& state) {
  setenv("FULLBORE_NVML", FULLBORE_FAKE_NVML_LIBRARY, 1);
  setenv("FULLBORE_FAKE_NVML",
         (fullbore::testing::SourceDirectory() + "/tests/fakes/nvml/eight_h100.json").c_str(), 1);
  const Command command;
  CountingSink sink;
  ProbeSet set = MakeProbes({"", command.pid(), "bench"});
  int64_t t_ns = MonotonicNs();
  Cost start;
  SampleOneSecond(set, t_ns, sink, start);  // finds the processes, opens the library
  SampleOneSecond(set, t_ns, sink, start);
  sink.readings = 0;
  Cost cost;
  for (auto _ : state) SampleOneSecond(set, t_ns, sink, cost);
  const auto seconds = static_cast<double>(state.iterations());
  state.counters["ratio_of_a_core"] = static_cast<double>(cost.fast_ns + cost.slow_ns) / seconds / 1e9;
  state.counters["fast_round_us"] = static_cast<double>(cost.fast_ns) / seconds / kFastRoundsPerSecond / 1e3;
  state.counters["slow_round_us"] = static_cast<double>(cost.slow_ns) / seconds / 1e3;
  state.counters["readings_per_s"] = static_cast<double>(sink.readings) / seconds;
  state.counters["series"] = static_cast<double>(sink.series_count());
  for (const auto& [name, ns] : cost.ns_by_probe) {
    state.counters["us_per_s:" + name] = static_cast<double>(ns) / seconds / 1e3;
  }
}
BENCHMARK(RecordsASecond)->Iterations(60)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fullbore::probe

BENCHMARK_MAIN();
