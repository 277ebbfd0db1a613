#include "measure/collect/run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/clock.h"
#include "base/guarded_file.h"
#include "base/secrets.h"
#include "base/text.h"
#include "measure/collect/command.h"
#include "measure/collect/group_witness.h"
#include "measure/collect/leftovers.h"
#include "measure/collect/recorder.h"
#include "measure/collect/signals.h"
#include "measure/collect/status_line.h"

namespace fullbore::collect {

namespace fs = std::filesystem;

namespace {

// A line of ours. Where nobody reads stderr (a full disk, a closed pipe) the run goes on without it.
void Say(const std::string& text) { (void)std::fputs(("fullbore: " + text + "\n").c_str(), stderr); }

std::string FreeRunId(const fs::path& directory, const std::string& wanted) {
  std::string id = wanted;
  for (int n = 2; fs::exists(directory / (id + ".fbr")); ++n) id = fmt::format("{}-{}", wanted, n);
  return id;
}

std::string NewRunId(const fs::path& directory, const std::string& name) {
  const auto now = static_cast<std::time_t>(WallNs() / kNsPerSecond);
  return FreeRunId(directory, fmt::format("{:%Y-%m-%d-%H%M}-{}", fmt::localtime(now), name));
}

// Inside another `fullbore run`, whose status line already has the terminal's last row.
bool IsNested() { return std::getenv("FULLBORE_RUN") != nullptr; }

// PYTHONPATH with the hook in front. What follows stays byte for byte: an empty entry there means the working
// directory, and an empty value no entry at all, to Python. In a run within a run the hook stands in front
// already.
std::string InFrontOf(std::string_view path, const std::string& hook_directory) {
  if (path == hook_directory) return hook_directory;
  if (path.starts_with(hook_directory + ":")) return std::string(path);
  return path.empty() ? hook_directory : hook_directory + ":" + std::string(path);
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
      : options_(options), status_(options.quiet || IsNested() ? -1 : STDERR_FILENO) {}

  RunResult Run();

 private:
  Result<record::RunWriter> Prepare();
  std::vector<std::string> KeptCommand() const;
  std::map<std::string, std::string> ChildEnvironment() const;
  void Discard(record::RunWriter writer) const;
  void Loop(Command& command, Recorder& recorder, Signals& signals);
  void OnSignal(const signalfd_siginfo& info, Command& command);
  void StopWithCommand(int signal, Signals& signals);
  void ShowStatus(const Recorder& recorder);
  void OnMessage(const record::Message& message);

  const RunOptions& options_;
  StatusLine status_;
  GroupWitness witness_;
  std::string run_id_;
  fs::path path_, channel_directory_;
  bool is_new_file_ = true;
  int64_t begin_ns_ = 0;
  int64_t next_status_ns_ = 0;
  std::vector<std::string> to_say_;
  std::set<std::string> said_;  // of --fast-data: the ranks of a training say the same
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
  if (auto made = MakeDirectory(directory, kPrivateDirectory); !made) {
    Error failure = made.error();
    failure.text += " (the directory of runs)";
    failure.hint = "choose another with -o DIR";
    return failure;
  }
  RemoveLeftovers(directory);
  const std::string name = options_.name.empty() ? NameOf(options_.command) : options_.name;
  run_id_ = options_.run_id.empty() ? NewRunId(directory, name) : options_.run_id;
  path_ = directory / (run_id_ + ".fbr");
  is_new_file_ = !fs::exists(path_, error);
  begin_ns_ = MonotonicNs();
  const std::string stage = options_.stage.empty() ? name : options_.stage;
  auto writer = record::RunWriter::Open(
      path_, {run_id_, stage, KeptCommand(), fs::current_path(error), options_.tags}, begin_ns_, WallNs());
  if (!writer) {
    Error failure = writer.error();
    if (failure.hint.empty()) failure.hint = "choose another directory with -o DIR";
    return failure;
  }
  auto channels = MakeChannelDirectory(directory, run_id_);
  if (!channels) return channels.error();
  channel_directory_ = *channels;
  return writer;
}

std::vector<std::string> Session::KeptCommand() const {
  if (!options_.keep_command_lines) return {};
  return MaskSecrets(options_.command);
}

std::map<std::string, std::string> Session::ChildEnvironment() const {
  std::map<std::string, std::string> environment = {{"FULLBORE_RUN", run_id_}};
  if (options_.hook_directory.empty()) return environment;
  environment["FULLBORE_CHANNEL"] = channel_directory_;
  environment["FULLBORE_HOOK_DIR"] = options_.hook_directory;
  const char* before = std::getenv("PYTHONPATH");
  environment["PYTHONPATH"] = InFrontOf(before ? before : "", options_.hook_directory);
  return environment;
}

RunResult Session::Run() {
  auto writer = Prepare();
  if (!writer) return RunFailure{writer.error(), 2};
  Signals signals;
  if (!options_.quiet) Say("recording to " + fs::proximate(path_).string());
  auto command = Command::Start(options_.command, ChildEnvironment(), signals.inherited());
  if (!command) {
    Discard(std::move(*writer));
    return RunFailure{command.error(),
                      command.error().code == ErrorCode::kNotFound ? kStatusNotFound : kStatusNotExecutable};
  }
  Recorder recorder(std::move(*writer), channel_directory_,
                    {"", command->pid(), run_id_, options_.keep_command_lines},
                    [this](const record::Message& message) { OnMessage(message); });
  Loop(*command, recorder, signals);
  status_.Hide();
  recorder.Finish(MonotonicNs(), command->exit_status(), command->ended_by_signal());
  for (const std::string& text : to_say_) Say(text);
  std::error_code ignored;
  fs::remove_all(channel_directory_, ignored);
  return RunOutcome{run_id_, path_, command->exit_status().value_or(0), recorder.wrote_everything()};
}

// Nothing ran: nothing is left of it, unless the file holds other stages.
void Session::Discard(record::RunWriter writer) const {
  std::error_code ignored;
  fs::remove_all(channel_directory_, ignored);
  if (!is_new_file_)
    return (void)writer.Close(MonotonicNs(), record::StageState::kEnded, std::nullopt, false);
  { const record::RunWriter closed = std::move(writer); }
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(path_.string() + suffix, ignored);
}

// What --fast-data did is told at once: whoever asked for it would not wait hours to hear that nothing came
// of it. What the recorder has to say waits for the end, where the command's output does not carry it away.
void Session::OnMessage(const record::Message& message) {
  if (message.source == "recorder") to_say_.push_back(message.text);
  if (message.source == "--fast-data" && !options_.quiet && said_.insert(message.text).second)
    Say(message.source + ": " + message.text);
}

void Session::Loop(Command& command, Recorder& recorder, Signals& signals) {
  while (true) {
    const int64_t next_ns = recorder.Tick(MonotonicNs());
    ShowStatus(recorder);
    pollfd ready = {signals.fd(), POLLIN, 0};
    const int64_t wait_ms = std::max<int64_t>(0, (next_ns - MonotonicNs()) / kNsPerMs + 1);
    poll(&ready, 1, static_cast<int>(wait_ms));
    for (auto change = command.Poll(); change != Command::Change::kNone; change = command.Poll()) {
      if (change == Command::Change::kEnded) return;
      if (change == Command::Change::kStopped) StopWithCommand(*command.stopped_by_signal(), signals);
    }
    while (const auto info = signals.Next()) OnSignal(*info, command);
  }
}

// What the terminal sends goes to the whole foreground group, and so to the command as well; what somebody
// sends to us alone is passed on. The first process of a session stands for it: when its terminal goes away,
// it alone is told.
void Session::OnSignal(const signalfd_siginfo& info, Command& command) {
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGCHLD) return;
  if (signal == SIGCONT && !command.stopped_by_signal()) return;  // sent to all of us, as shells do
  const bool from_terminal = info.ssi_code > 0;
  const bool leads_session = getsid(0) == getpid();
  if (from_terminal ? signal == SIGHUP && leads_session : !witness_.SawToo(signal)) command.Send(signal);
}

// The shell that waits for us sees a stopped job, as it would without us; `fg` and `bg` go on from here. A
// SIGSTOP was sent to the command alone, and so will be what continues it: we follow only where a shell would
// otherwise wait for a job that stands still.
void Session::StopWithCommand(int signal, Signals& signals) {
  status_.Hide();
  if (signal != SIGSTOP)
    signals.StopAs(signal);
  else if (IsForeground(STDIN_FILENO) || IsForeground(STDERR_FILENO))
    signals.StopAs(SIGTSTP);
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
