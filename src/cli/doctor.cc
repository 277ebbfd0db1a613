// fullbore doctor: tries every probe for a moment, says what can be measured, and what to do about the rest.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "base/captured.h"
#include "base/clock.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/hook_directory.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "measure/probe/registry.h"
#include "tune/trial/shelter.h"

namespace fullbore::cli {

using record::Metric;

namespace {

struct Check {
  std::string what;
  bool ok = false;
  std::string found;   // what was seen
  std::string advice;  // what to do, where something is missing
};

// Collects the series that arrive.
class SeenSink : public probe::Sink {
 public:
  void Read(const record::SeriesKey& key, int64_t, double value) override { last[key.name] = value; }
  void Say(record::Severity, std::string_view source, std::string_view text) override {
    messages.push_back(std::string(source) + ": " + std::string(text));
  }
  void SetMachineFact(std::string_view key, std::string_view value) override {
    facts[std::string(key)] = value;
  }

  std::map<std::string, double> last;
  std::map<std::string, std::string> facts;
  std::vector<std::string> messages;
};

// Stands in for the command that `run` would start: the probe of processes leaves out our own.
class IdleCommand {
 public:
  IdleCommand() : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent_) pause();
    _exit(0);
  }
  ~IdleCommand() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  IdleCommand(const IdleCommand&) = delete;
  IdleCommand& operator=(const IdleCommand&) = delete;
  pid_t pid() const { return pid_; }

 private:
  const pid_t parent_ = getpid();
  const pid_t pid_;
};

SeenSink TryProbes() {
  constexpr auto kBetween = std::chrono::milliseconds(250);  // GPM needs 100 ms between two samples
  SeenSink sink;
  probe::Machine machine;
  const IdleCommand command;
  machine.command_pid = command.pid();
  probe::ProbeSet probes = probe::MakeProbes(machine);
  for (int round = 0; round < 3; ++round) {
    if (round) std::this_thread::sleep_for(kBetween);
    for (const auto& probe : probes.probes) probe->Sample(MonotonicNs(), sink);
  }
  return sink;
}

// Run before the first import of anything that is not built in: `-c` searches the working directory first,
// and a torch.py there is not PyTorch. (-P does this from Python 3.11 on; -I would also leave out the user's
// own site-packages.)
constexpr char kNotFromHere[] = "import sys; sys.path[:1] == [\"\"] and sys.path.pop(0); ";

// Importing PyTorch from a network file system that has not been read yet takes its time.
constexpr int64_t kPatienceNs = 300 * kNsPerSecond;

// Runs a command and returns its first line of output; nothing where it failed.
std::optional<std::string> FirstLineOf(std::vector<std::string> words) {
  const auto done = RunAndCapture(std::move(words), kPatienceNs);
  if (!done || done->status != 0) return std::nullopt;
  const std::string said = done->both();
  const std::string_view line = Trim(Split(said, '\n').front());
  return line.empty() ? std::nullopt : std::optional<std::string>(line);
}

std::vector<std::string> Python(const std::string& code, const std::string& argument = "") {
  return {"python3", "-c", kNotFromHere + code, argument};
}

// Which of its two paths the hook takes in this Python, and why: asked of the module that decides it.
Check HookCheck() {
  const std::string hook = (std::filesystem::path(HookDirectory()) / "..").lexically_normal();
  std::vector<std::string> ask = Python(
      "sys.path.insert(0, sys.argv[1]); from core import native; print(native.PATH, native.reason)", hook);
  ask.insert(ask.begin(), {"env", "FULLBORE_PACKAGE=" + PackageDirectory()});
  const auto answer = FirstLineOf(ask);
  const bool is_native = answer && answer->rfind("native ", 0) == 0;
  return {"the hook's extension loads", is_native, answer.value_or("no"),
          is_native ? "" : "the hook does the same in Python, at a few times the cost for each step"};
}

Check SeriesCheck(const SeenSink& sink, const std::string& what, record::Metric metric,
                  const std::string& advice) {
  const std::string series(Name(metric));
  const bool seen = sink.last.count(series) != 0;
  return {what, seen, seen ? series : "not readable", seen ? "" : advice};
}

// Whether `measure` and `tune` can keep trials off the user's files.
Check TrialsCheck(const std::string& here) {
  const auto shelter = tune::FindShelter(here);
  const isolate::Found found = shelter ? shelter->found : isolate::Found{};
  const bool has_view = found.protection == isolate::Protection::kView;
  const bool has_guard = found.protection == isolate::Protection::kGuard;
  return {"trials change none of your files", has_view,
          has_view    ? "namespaces, overlayfs"
          : has_guard ? "no, but writing is refused (Landlock)"
                      : "no, and nothing is refused",
          has_view ? "" : found.why_no_view + ": " + found.how_to_allow};
}

std::vector<Check> CheckAll(const SeenSink& sink) {
  std::vector<Check> checks;
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  const bool writable = !error && access(here.c_str(), W_OK) == 0;
  const auto ours = collect::CheckRunsDirectory(kDefaultRunsDirectory);
  checks.push_back({"runs can be stored here", writable && ours.ok(), here.string(),
                    !writable ? "use -o DIR with a writable directory"
                    : ours    ? ""
                              : ours.error().text});
  checks.push_back(TrialsCheck(here.string()));
  const auto torch = FirstLineOf(Python("import torch; print(torch.__version__)"));
  checks.push_back(
      {"python3 imports torch", torch.has_value(), torch.value_or("no"),
       torch ? "" : "activate the environment that the training uses; other environments are recorded, too"});
  // In the same places as the hook: the interpreter's own, else the one beside this program.
  const auto data = FirstLineOf(  // an empty entry would be the working directory
      Python("sys.path.extend(filter(None, sys.argv[1:])); import fullbore.data as d; print(d.__path__[0])",
             PackageDirectory()));
  checks.push_back({"python3 imports fullbore.data", data.has_value(), data.value_or("no"),
                    data ? "" : "for --fast-data and in scripts: pip install . in fullbore's sources"});
  checks.push_back(HookCheck());
  checks.push_back(
      SeriesCheck(sink, "CPU", Metric::kCpuUtilization, "/proc/stat is hidden: a container without /proc?"));
  checks.push_back(
      SeriesCheck(sink, "pressure stalls (PSI)", Metric::kPsiCpuSome, "boot the kernel with psi=1"));
  checks.push_back(SeriesCheck(sink, "memory", Metric::kMemoryAvailable, "/proc/meminfo is hidden"));
  checks.push_back(SeriesCheck(sink, "disks", Metric::kDiskRead,
                               "/proc/diskstats is hidden or names no disk: a container"));
  checks.push_back(SeriesCheck(sink, "network", Metric::kNetReceive, "/proc/net/dev is hidden"));
  checks.push_back(SeriesCheck(sink, "limits of the control group", Metric::kCgroupMemoryUsed,
                               "no memory controller is visible: limits of a container are not known"));
  checks.push_back(SeriesCheck(sink, "processes of a command", Metric::kProcessCpu,
                               "/proc is mounted with hidepid: run as the same user"));
  checks.push_back(SeriesCheck(sink, "shared memory", Metric::kShmTotal,
                               "/dev/shm is not mounted: loader workers will fail"));
  checks.push_back(
      SeriesCheck(sink, "GPU (NVML)", Metric::kGpuUtilization,
                  "no NVIDIA driver, or the container lacks it: nvidia-smi; docker run --gpus all"));
  checks.push_back(SeriesCheck(sink, "SM and tensor-core activity (GPM)", Metric::kGpuSmActive,
                               "needs a Hopper or newer GPU"));
  return checks;
}

int Examine(ResultFile& json, bool force) {
  if (auto judged = JudgeResults({&json}, {}, force); !judged) return Fail(judged.error(), kExitUsage);
  const SeenSink sink = TryProbes();
  const std::vector<Check> checks = CheckAll(sink);
  if (json.wanted()) {
    nlohmann::ordered_json report = {{"schema", "fullbore.doctor/1"}, {"machine", sink.facts}};
    for (const Check& check : checks) {
      report["checks"].push_back({{"what", check.what}, {"ok", check.ok}, {"found", check.found}});
      if (!check.advice.empty()) report["checks"].back()["advice"] = check.advice;
    }
    report["series"] = nlohmann::ordered_json::array();
    for (const auto& [name, value] : sink.last) report["series"].push_back(name);
    report["messages"] = sink.messages;
    if (auto written = WriteJson(json, report); !written) return Fail(written.error(), kExitFailure);
    if (json.IsStandardOutput()) return 0;
  }
  const bool color = isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
  Print(stdout, "fullbore doctor: what can be measured here\n\n");
  for (const Check& check : checks) {
    const char* mark = check.ok ? (color ? "  \x1b[32mok\x1b[0m  " : "  ok  ")
                                : (color ? "  \x1b[33mno\x1b[0m  " : "  no  ");
    PrintLaidOut(stdout, mark);
    Print(stdout, "{:<36} {}\n", check.what, check.found);
    if (!check.advice.empty()) Print(stdout, "      {:<36} -> {}\n", "", check.advice);
  }
  for (const std::string& message : sink.messages) Print(stdout, "\n  {}", message);
  Print(stdout,
        "{}\n  {} series can be recorded here. Steps need PyTorch >= 1.13 on Python >= 3.9; everything else "
        "works without them.\n",
        sink.messages.empty() ? "" : "\n", sink.last.size());
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  struct Flags {
    ResultFile json{"--json", kJsonResult};
    bool force = false;
  };
  auto flags = std::make_shared<Flags>();
  AddResult(app, flags->json, "Write the findings to this file");
  AddForce(app, flags->force);
  return [flags] { return Examine(flags->json, flags->force); };
}

}  // namespace

const Subcommand kDoctor = {"doctor",
                            "Say what can be measured on this machine, and what to do about the rest",
                            "fullbore doctor", Define};

}  // namespace fullbore::cli
