#include "collect/run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "collect/command.h"
#include "collect/recorder.h"
#include "collect/status_line.h"

namespace fullbore::collect {

namespace fs = std::filesystem;

namespace {

// Signals that a person or a scheduler sends to end, stop or resize: read from a descriptor, never by a
// handler.
sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGTSTP})
    sigaddset(&set, signal);
  return set;
}

std::string FreeRunId(const fs::path& directory, const std::string& wanted) {
  std::string id = wanted;
  for (int n = 2; fs::exists(directory / (id + ".fbr")); ++n) id = fmt::format("{}-{}", wanted, n);
  return id;
}

std::string NewRunId(const fs::path& directory, const std::string& name) {
  const auto now = static_cast<std::time_t>(WallNs() / kNsPerSecond);
  return FreeRunId(directory, fmt::format("{:%Y-%m-%d-%H%M}-{}", fmt::localtime(now), name));
}

bool IsPlainName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

// One run, from its files to its end.
class Session {
 public:
  explicit Session(const RunOptions& options)
      : options_(options), status_(options.quiet ? -1 : STDERR_FILENO) {}

  RunResult Run();

 private:
  Result<record::RunWriter> Prepare();
  std::map<std::string, std::string> ChildEnvironment() const;
  void Loop(Command& command, Recorder& recorder, int signals_fd);
  void OnSignal(const signalfd_siginfo& info, Command& command);
  void StopWithCommand();
  void ShowStatus(const Recorder& recorder);
  void SayAtEnd(const record::Message& message);

  const RunOptions& options_;
  StatusLine status_;
  std::string run_id_;
  fs::path path_, channel_directory_;
  int64_t begin_ns_ = 0;
  int64_t next_status_ns_ = 0;
  std::vector<record::Message> to_say_;
};

Result<record::RunWriter> Session::Prepare() {
  for (const auto& [what, name] : {std::pair<const char*, const std::string&>{"--name", options_.name},
                                   {"--run", options_.run_id},
                                   {"--stage", options_.stage}}) {
    if (!name.empty() && !IsPlainName(name)) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("{} '{}' cannot be a file name", what, name),
                   "use letters, digits, '-', '_' and '.'"};
    }
  }
  std::error_code error;
  fs::path directory = fs::absolute(options_.directory, error);
  fs::create_directories(directory, error);
  if (error) {
    Error failure = ErrnoError(fmt::format("cannot create the directory of runs '{}'", directory.string()),
                               error.value());
    failure.hint = "choose another with -o DIR";
    return failure;
  }
  const std::string name = options_.name.empty() ? NameOf(options_.command) : options_.name;
  run_id_ = options_.run_id.empty() ? NewRunId(directory, name) : options_.run_id;
  path_ = directory / (run_id_ + ".fbr");
  begin_ns_ = MonotonicNs();
  const std::string stage = options_.stage.empty() ? name : options_.stage;
  auto writer = record::RunWriter::Open(
      path_, {run_id_, stage, options_.command, fs::current_path(error), options_.tags}, begin_ns_, WallNs());
  if (!writer) {
    Error failure = writer.error();
    if (failure.hint.empty()) failure.hint = "choose another directory with -o DIR";
    return failure;
  }
  channel_directory_ = directory / fmt::format("{}.channel.{}", run_id_, getpid());
  fs::create_directories(channel_directory_, error);
  if (error) return ErrnoError(fmt::format("cannot create '{}'", channel_directory_.string()), error.value());
  return writer;
}

std::map<std::string, std::string> Session::ChildEnvironment() const {
  std::map<std::string, std::string> environment = {{"FULLBORE_RUN", run_id_}};
  if (options_.hook_directory.empty()) return environment;
  const char* path = std::getenv("PYTHONPATH");
  environment["FULLBORE_CHANNEL"] = channel_directory_;
  environment["FULLBORE_HOOK_DIR"] = options_.hook_directory;
  environment["PYTHONPATH"] = options_.hook_directory + (path && *path ? ":" + std::string(path) : "");
  return environment;
}

RunResult Session::Run() {
  auto writer = Prepare();
  if (!writer) return RunFailure{writer.error(), 2};
  const sigset_t signals = WatchedSignals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  UniqueFd signals_fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!options_.quiet) {
    fmt::print(stderr, "fullbore: recording to {}\n", fs::proximate(path_).string());
  }
  auto command = Command::Start(options_.command, ChildEnvironment(), signals);
  if (!command) {
    std::error_code ignored;
    if (options_.run_id.empty()) fs::remove(path_, ignored);
    fs::remove_all(channel_directory_, ignored);
    return RunFailure{command.error(),
                      command.error().code == ErrorCode::kNotFound ? kStatusNotFound : kStatusNotExecutable};
  }
  Recorder recorder(std::move(*writer), channel_directory_, {"", command->pid(), run_id_},
                    [this](const record::Message& message) { to_say_.push_back(message); });
  Loop(*command, recorder, signals_fd.get());
  status_.Hide();
  recorder.Finish(MonotonicNs(), command->exit_status(),
                  command->ended_by_signal() == SIGKILL || command->exit_status() != 0);
  for (const record::Message& message : to_say_) SayAtEnd(message);
  std::error_code ignored;
  fs::remove_all(channel_directory_, ignored);
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  return RunOutcome{run_id_, path_, command->exit_status().value_or(0), recorder.wrote_everything()};
}

void Session::SayAtEnd(const record::Message& message) {
  if (message.source == "recorder") fmt::print(stderr, "fullbore: {}\n", message.text);
}

void Session::Loop(Command& command, Recorder& recorder, int signals_fd) {
  while (true) {
    const int64_t next_ns = recorder.Tick(MonotonicNs());
    ShowStatus(recorder);
    pollfd ready = {signals_fd, POLLIN, 0};
    const int64_t wait_ms = std::max<int64_t>(0, (next_ns - MonotonicNs()) / kNsPerMs + 1);
    poll(&ready, 1, static_cast<int>(wait_ms));
    signalfd_siginfo info{};
    while (read(signals_fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) OnSignal(info, command);
    switch (command.Poll()) {
      case Command::Change::kEnded:
        return;
      case Command::Change::kStopped:
        StopWithCommand();
        command.Send(SIGCONT);
        break;
      default:
        break;
    }
  }
}

// What the terminal sends goes to the whole foreground group, and so to the command as well; what somebody
// sends to us alone is passed on.
void Session::OnSignal(const signalfd_siginfo& info, Command& command) {
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGCHLD || signal == SIGTSTP) return;  // a stop shows as the command's own
  if (info.ssi_code == SI_USER || info.ssi_code == SI_QUEUE || info.ssi_code == SI_TKILL)
    command.Send(signal);
}

// The shell that waits for us sees a stopped job, as it would without us; `fg` and `bg` go on from here.
void Session::StopWithCommand() {
  status_.Hide();
  raise(SIGSTOP);
}

void Session::ShowStatus(const Recorder& recorder) {
  const int64_t now_ns = MonotonicNs();
  if (!status_.available() || now_ns < next_status_ns_) return;
  next_status_ns_ = now_ns + kNsPerSecond / 2;
  const Recorder::Live live = recorder.live(now_ns);
  std::string text = fmt::format(" fullbore  {}", FormatDuration(now_ns - begin_ns_));
  if (live.ranks == 0) {
    text += "  no training step yet";
  } else {
    text += fmt::format("  step {}", FormatCount(static_cast<double>(live.training.steps)));
    if (live.training.samples_per_s > 0)
      text += fmt::format("  {} samples/s", FormatCount(live.training.samples_per_s));
    text += fmt::format("  waiting for data {}", FormatPercent(live.training.waiting_share));
    if (live.ranks > 1) text += fmt::format("  {} ranks", live.ranks);
  }
  if (live.gpu_utilization) text += fmt::format("  GPU busy {}", FormatPercent(*live.gpu_utilization));
  if (live.cpu_utilization) text += fmt::format("  CPU {}", FormatPercent(*live.cpu_utilization));
  status_.Show(text);
}

}  // namespace

std::string NameOf(const std::vector<std::string>& command) {
  std::string name = command.empty() ? "run" : fs::path(command.front()).filename().string();
  for (size_t i = 1; i < command.size(); ++i) {
    const fs::path word = command[i];
    if (word.extension() == ".py" || word.extension() == ".sh") {
      name = word.stem();
      break;
    }
    if (command[i] == "-m" && i + 1 < command.size()) {
      name = command[i + 1].substr(command[i + 1].rfind('.') + 1);
      if (name != "run" && name != "launch")
        break;  // torch.distributed.run and the like: look for the script
    }
  }
  std::erase_if(name, [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_'; });
  return name.empty() ? "run" : name;
}

RunResult Run(const RunOptions& options) { return Session(options).Run(); }

}  // namespace fullbore::collect
