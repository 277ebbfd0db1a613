#include "cli/loader_bench_script.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/cores.h"
#include "base/fd.h"
#include "base/temporary_directory.h"
#include "cli/hook_directory.h"

namespace fullbore::cli {

namespace fs = std::filesystem;

namespace {

constexpr int kNotStarted = 127;

// In the child: never returns.
[[noreturn]] void Become(const ScriptRun& run, const std::string& hook, const std::string& directory,
                         pid_t parent) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);  // the script is run for our measurement alone
  if (getppid() != parent) _exit(kNotStarted);
  const char* before = std::getenv("PYTHONPATH");
  const std::string path = before && *before ? hook + ":" + before : hook;
  setenv("PYTHONPATH", path.c_str(), 1);
  setenv("FULLBORE_CHANNEL", directory.c_str(), 1);
  setenv("FULLBORE_CHANNEL_DISK", directory.c_str(), 1);
  setenv("FULLBORE_DRAIN", directory.c_str(), 1);
  setenv("FULLBORE_DRAIN_SECONDS", fmt::format("{}", run.seconds).c_str(), 1);
  setenv("FULLBORE_PACKAGE", PackageDirectory().c_str(), 1);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  dup2(STDERR_FILENO, STDOUT_FILENO);  // our stdout is for what was measured
  std::vector<std::string> words = {run.python, run.script};
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  _exit(kNotStarted);
}

// Waits for the child and returns its status as waitpid has it. The terminal sends Ctrl-C to both of us.
int WaitFor(pid_t child, const std::atomic<bool>& stop, const std::function<void()>& tell) {
  int status = 0;
  bool told_to_end = false;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (stop && !told_to_end) {
      kill(child, SIGTERM);
      told_to_end = true;
    }
    tell();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return status;
}

std::vector<nlohmann::json> ReadRanks(const std::string& directory) {
  std::vector<nlohmann::json> ranks;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".json") continue;
    const auto text = ReadFile(entry.path().string());
    auto json = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
    if (json.is_object()) ranks.push_back(std::move(json));
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const auto& a, const auto& b) { return a.value("rank", 0) < b.value("rank", 0); });
  return ranks;
}

}  // namespace

Result<loader::bench::ScriptFlow> DrainScript(const ScriptRun& run, const std::atomic<bool>& stop,
                                              const std::function<void(const std::string& doing)>& tell) {
  if (!fs::exists(run.script)) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no script '{}'", run.script), ""};
  }
  const std::string hook = HookDirectory();
  if (hook.empty()) {
    return Error{ErrorCode::kNotFound, "the Python hook is not installed beside this binary",
                 "fullbore doctor"};
  }
  const auto directory = TemporaryDirectory::Make();
  if (!directory) return directory.error();
  const pid_t parent = getpid(), child = fork();
  if (child < 0) return ErrnoError("cannot start a process", errno);
  if (child == 0) Become(run, hook, directory->path(), parent);
  const int status =
      WaitFor(child, stop, [&] { tell("waiting for the script's first step, then its loader alone"); });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted) {
    return Error{ErrorCode::kNotFound, fmt::format("cannot run '{}'", run.python),
                 "--python names the interpreter"};
  }
  const auto ranks = ReadRanks(directory->path());
  if (stop) return Error{ErrorCode::kUnavailable, "interrupted before the loader was measured", ""};
  if (ranks.empty() && status != 0) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("'{}' ended with {} before its first step", run.script,
                             WIFEXITED(status) ? fmt::format("status {}", WEXITSTATUS(status))
                                               : fmt::format("signal {}", WTERMSIG(status))),
                 "its output is above"};
  }
  auto flow = loader::bench::SumRanks(ranks);
  if (flow) {
    flow->script = run.script;
    flow->cores = UsableCores();
  }
  return flow;
}

}  // namespace fullbore::cli
