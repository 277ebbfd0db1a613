#include "measure/collect/run.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/ending_signals.h"
#include "base/print.h"
#include "base/temporary_directory.h"
#include "base/text.h"
#include "base/trusted_path.h"
#include "measure/collect/channel_place.h"
#include "measure/collect/command.h"
#include "measure/collect/ending.h"
#include "measure/collect/group_witness.h"
#include "measure/collect/inner_run.h"
#include "measure/collect/job_facts.h"
#include "measure/collect/leftovers.h"
#include "measure/collect/recorder.h"
#include "measure/collect/run_files.h"
#include "measure/collect/run_place.h"
#include "measure/collect/signals.h"
#include "measure/collect/status_line.h"

namespace fullbore::collect {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kLookInTurnNs = kNsPerSecond / 100;  // the end of a turn is not seen later

// Prints one line of ours. If stderr cannot be written (a full disk, a closed
// pipe), the run goes on without it.
void Say(const std::string& text) { Print(stderr, "fullbore: {}\n", text); }

// Inside another `fullbore run`, whose status line already occupies the last row of the terminal.
bool IsNested() { return std::getenv("FULLBORE_RUN") != nullptr; }

// PYTHONPATH with the hook in front. The rest is kept byte for byte: to Python, an empty entry means the
// working directory, and an empty value no entry at all. In a run within a run the hook is already in front.
std::string InFrontOf(std::string_view path, const std::string& hook_directory) {
  if (path == hook_directory) return hook_directory;
  if (path.starts_with(hook_directory + ":")) return std::string(path);
  return path.empty() ? hook_directory : hook_directory + ":" + std::string(path);
}

// One run, from creating its files to its end. Whatever part of it fails, the command runs, and
// the terminal says what is lost.
class Session {
 public:
  explicit Session(const RunOptions& options)
      : options_(options), status_(options.quiet || IsNested() ? -1 : STDERR_FILENO) {
    if (!options.starter) witness_.emplace();
  }

  RunResult Run();

 private:
  bool IsOptional() const { return !options_.trial && !options_.starter; }  // the recording, not the command
  std::string ProcessMark() const;
  std::map<std::string, std::string> ChildEnvironment() const;
  Result<Command> Start(const std::map<std::string, std::string>& environment);
  void Take(const RunFiles& files);
  RunResult BecomeTheCommand(const Error& why);
  template <typename Call>
  void WithRecorder(Call call);
  std::map<std::string, std::string> Facts() const;
  void StartRecorder(record::RunWriter writer, const Command& command);
  void KeepWhatWasDeleted();
  void Loop(Command& command);
  void OnSignal(const signalfd_siginfo& info, Command& command);
  void OnTrialSignal(int signal);
  void EndWhereOver(int64_t now_ns);
  void EndAtLimit(int64_t now_ns);
  void FinishRecording(const Command& command);
  void TakeTurn(int64_t now_ns);
  void Pause(int signal);
  bool IsForCommand(const signalfd_siginfo& info);
  void StopWithCommand(int signal);
  void ShowStatus(const Recorder& recorder);
  void LetOthersLook(int64_t now_ns);
  void OnMessage(const record::Message& message);

  const RunOptions& options_;
  Signals signals_;
  StatusLine status_;
  std::optional<GroupWitness> witness_;
  std::optional<Recorder> recorder_;  // none if nothing can be recorded
  std::optional<Ending> ending_;      // of a trial, or at a limit
  std::string why_ended_;             // at a limit
  bool verdict_is_sure_ = false;
  bool stands_ = false;  // a trial, while another one has its turn
  std::optional<int> interrupted_by_;
  RunPlace place_;
  ChannelPlace channels_;  // empty if there are none
  int64_t begin_ns_ = MonotonicNs();
  int64_t next_status_ns_ = 0;
  int64_t next_beat_ns_ = 0;
  std::vector<std::string> to_say_;
  std::set<std::string> said_;  // by --fast-data and --autopilot: all ranks of a training say the same
};

// In the environment of every process of the command. Runs in two directories may have the same id, which alone
// would count the processes of one among those of the other.
std::string Session::ProcessMark() const {
  return fmt::format("{}:{}:{}", place_.run_id, getpid(), begin_ns_);
}

std::map<std::string, std::string> Session::ChildEnvironment() const {
  std::map<std::string, std::string> environment;
  if (options_.trial) environment = options_.trial->environment;
  environment["FULLBORE_RUN"] = ProcessMark();
  environment["FULLBORE_RUN_FILE"] = place_.path;  // for those who read it while it grows: python/fullbore
  const char* windows = std::getenv("FULLBORE_WINDOWS");
  if (options_.starter && windows) environment["FULLBORE_WINDOWS"] = windows;  // ours is not its tasks'
  if (options_.hook_directory.empty() || channels_.channel.empty()) return environment;
  environment["FULLBORE_CHANNEL"] = channels_.channel;
  environment["FULLBORE_CHANNEL_DISK"] = channels_.traces;
  environment["FULLBORE_HOOK_DIR"] = options_.hook_directory;
  environment["FULLBORE_PACKAGE"] = options_.package_directory;
  const char* before = std::getenv("PYTHONPATH");
  environment["PYTHONPATH"] = InFrontOf(before ? before : "", options_.hook_directory);
  return environment;
}

RunResult Session::Run() {
  if (auto checked = CheckNames(options_); !checked) return RunFailure{checked.error(), 2};
  std::optional<RunFiles> files = RunFiles::Make(options_);
  signals_.Watch();
  if (files) Take(*files);
  const auto environment = files ? ChildEnvironment() : std::map<std::string, std::string>();
  if (!IsOptional() && (!files || (options_.trial && channels_.channel.empty()))) {
    if (files) std::move(*files).Discard();
    return RunFailure{{ErrorCode::kUnavailable, "a trial that cannot be recorded is not started",
                       "choose a directory for runs that can be written to: -o DIR"},
                      1};
  }
  auto command = Start(environment);
  if (!command) {
    if (files) std::move(*files).Discard();
    if (command.error().code == ErrorCode::kUnavailable && IsOptional())
      return BecomeTheCommand(command.error());
    return RunFailure{command.error(),
                      command.error().code == ErrorCode::kNotFound ? kStatusNotFound : kStatusNotExecutable};
  }
  if (options_.trial)
    ending_ = Ending::OfTrial(command->ancestor(), ProcessMark());
  else if (options_.limit && !options_.starter)
    ending_ = Ending::AsCtrlC(command->pid(), ProcessMark());
  if (files) StartRecorder(std::move(files->writer), *command);
  Loop(*command);
  status_.Hide();
  command->EndRest();
  const bool was_ended = ending_ && ending_->begun();
  if (was_ended) ending_->EndRest();
  if (options_.trial) ending_->KillRest();
  FinishRecording(*command);
  for (const std::string& text : to_say_) Say(text);
  Remove(channels_);
  return RunOutcome{place_.run_id,
                    place_.path,
                    command->exit_status().value_or(0),
                    recorder_ && recorder_->wrote_everything(),
                    recorder_ && recorder_->out_of_memory(),
                    was_ended,
                    interrupted_by_};
}

void Session::Take(const RunFiles& files) {
  place_ = files.place;
  channels_ = files.channels;
  begin_ns_ = files.begin_ns;
  if (!options_.quiet) Say("recording to " + FromHere(place_.path));
}

// How a command ended that we ended says nothing about it.
void Session::FinishRecording(const Command& command) {
  WithRecorder([&](Recorder& recorder) {
    if (!why_ended_.empty()) {
      recorder.Say({MonotonicNs(), record::Severity::kInfo, "--for",
                    fmt::format("fullbore ended the command {}; its exit status was then {}", why_ended_,
                                command.exit_status().value_or(0))});
    }
    if (ending_ && ending_->begun())
      recorder.Finish(MonotonicNs(), 0, std::nullopt);
    else
      recorder.Finish(MonotonicNs(), command.exit_status(), command.ended_by_signal());
    KeepWhatWasDeleted();
  });
}

Result<Command> Session::Start(const std::map<std::string, std::string>& environment) {
  if (options_.starter) return Command::StartedBy(*options_.starter, environment);
  std::optional<Command::Apart> apart;
  if (options_.trial) {
    apart = options_.trial->apart;
    for (const std::string& ours : {channels_.channel, channels_.traces}) {
      if (!ours.empty()) apart->files.written_through.push_back(ours);
    }
  }
  return Command::Start(options_.command, environment, signals_.inherited(), apart);
}

// If no second process can be created (a limit on processes or open files), this one becomes the command.
RunResult Session::BecomeTheCommand(const Error& why) {
  Say(why.text + ": the command runs, but nothing is recorded");
  witness_.reset();
  const Error error = Command::Become(options_.command, signals_.inherited());
  return RunFailure{error, error.code == ErrorCode::kNotFound ? kStatusNotFound : kStatusNotExecutable};
}

// What a scheduler says of the job; of tasks that it starts itself it tells their environment.
std::map<std::string, std::string> Session::Facts() const {
  return JobFacts(LoginName(geteuid()), [this](const char* name) {
    const char* told = options_.starter ? options_.starter->Variable(name) : nullptr;
    return told ? told : std::getenv(name);
  });
}

void Session::StartRecorder(record::RunWriter writer, const Command& command) {
  try {
    for (const auto& [fact, value] : Facts()) writer.PutMachineFact(fact, value);
    if (const char* outer = std::getenv("FULLBORE_CHANNEL")) TellOuterRun(outer);
    recorder_.emplace(std::move(writer), channels_,
                      probe::Machine{"", command.pid(), ProcessMark(), options_.keep_command_lines},
                      channels_.channel.empty() ? "" : options_.hook_directory,
                      [this](const record::Message& message) { OnMessage(message); });
    if (options_.trial) recorder_->SetStepListener(options_.trial->on_step);
  } catch (const std::exception& error) {
    Say(fmt::format("the recorder did not start: {}; the command continues unrecorded", error.what()));
  }
}

// An exception here (out of memory, a bug) ends the recording. The command and
// its exit status are unaffected.
template <typename Call>
void Session::WithRecorder(Call call) {
  if (!recorder_) return;
  try {
    call(*recorder_);
  } catch (const std::exception& error) {
    recorder_.reset();
    Say(fmt::format("the recorder failed: {}; the command continues unrecorded", error.what()));
  }
}

// A run file that was deleted while it was written, perhaps together with the working directory, still
// exists for whoever has it open.
void Session::KeepWhatWasDeleted() {
  if (!recorder_->run_file_was_deleted()) return;
  auto elsewhere = TemporaryDirectory::Make();
  const std::string copy =
      elsewhere ? elsewhere->path() + "/" + fs::path(place_.path).filename().string() : "";
  const auto copied = elsewhere ? recorder_->CopyTo(copy) : elsewhere.error();
  if (!copied) {
    to_say_.push_back(fmt::format("'{}' was deleted during the run: {}", place_.path, copied.error().text));
    place_.path.clear();
    return;
  }
  to_say_.push_back(
      fmt::format("'{}' was deleted during the run; the run is now in '{}'", place_.path, copy));
  place_.path = copy;
  (void)elsewhere->Keep();
}

// Messages of --fast-data and --autopilot are shown at once: nobody who asked for it wants to wait hours to hear that it
// had no effect. So is that /dev/shm is nearly full, which may end the run. Messages of the recorder wait for the end, where the command's output does not scroll them away.
void Session::OnMessage(const record::Message& message) {
  if (message.source == "recorder") to_say_.push_back(message.text);
  const bool was_asked_for = message.source == "--fast-data" || message.source == "--autopilot";
  const bool may_end_it = message.source == "/dev/shm";
  if ((was_asked_for || may_end_it) && !options_.quiet && said_.insert(message.text).second)
    Say(message.source + ": " + message.text);
}

void Session::Loop(Command& command) {
  while (true) {
    const int64_t now_ns = MonotonicNs();
    int64_t next_ns = now_ns + kNsPerSecond;
    WithRecorder([&](Recorder& recorder) {
      next_ns = recorder.Tick(now_ns);
      ShowStatus(recorder);
    });
    LetOthersLook(now_ns);
    if (ending_) EndWhereOver(now_ns);
    if (now_ns >= next_beat_ns_ && !channels_.channel.empty()) {
      Beat(channels_);
      next_beat_ns_ = now_ns + kBeatNs;
    }
    const bool takes_turns = options_.trial && options_.trial->turns;
    if (takes_turns && !stands_) next_ns = std::min(next_ns, now_ns + kLookInTurnNs);
    pollfd ready[] = {{signals_.fd(), POLLIN, 0},
                      {takes_turns && stands_ ? options_.trial->turns->word : -1, POLLIN, 0}};
    const int64_t wait_ms = std::max<int64_t>(0, (next_ns - MonotonicNs()) / kNsPerMs + 1);
    poll(ready, std::size(ready), static_cast<int>(wait_ms));
    for (auto change = command.Poll(); change != Command::Change::kNone; change = command.Poll()) {
      if (change == Command::Change::kEnded) return;
      if (change == Command::Change::kStopped && !options_.trial)
        StopWithCommand(*command.stopped_by_signal());
    }
    while (const auto info = signals_.Next()) OnSignal(*info, command);
  }
}

// A run within a run is the outer one's to speak of, and a run of several stages may show another one first.
void Session::LetOthersLook(int64_t now_ns) {
  if (recorder_ && options_.keep_watch) {
    for (const std::string& line : options_.keep_watch(place_.path)) {
      if (!options_.quiet) Say(line);
    }
  }
  const bool heeded = !options_.quiet || options_.limit;
  if (!recorder_ || !options_.onlook || !heeded || !options_.run_id.empty() || IsNested()) return;
  const auto said = options_.onlook(place_.path, now_ns);
  if (said && !options_.quiet) Say(*said);
  verdict_is_sure_ = verdict_is_sure_ || said;
}

void Session::EndWhereOver(int64_t now_ns) {
  if (options_.trial) {
    if (options_.trial->is_over(now_ns)) ending_->Begin();
    TakeTurn(now_ns);
  } else if (!ending_->begun()) {
    EndAtLimit(now_ns);
  }
  ending_->Tick(now_ns);
}

void Session::EndAtLimit(int64_t now_ns) {
  const int64_t steps = recorder_ ? recorder_->live(now_ns).training.steps : 0;
  const auto why = WhyOver(*options_.limit, {now_ns - begin_ns_, steps, verdict_is_sure_});
  if (!why) return;
  why_ended_ = *why;
  ending_->Begin();
  status_.Hide();
  if (!options_.quiet) Say(fmt::format("the command is ended {}", why_ended_));
}

void Session::OnSignal(const signalfd_siginfo& info, Command& command) {
  if (info.ssi_signo == SIGCHLD) return;
  if (options_.trial) return OnTrialSignal(static_cast<int>(info.ssi_signo));
  // Somebody ends it before us: how it ends is then theirs, and the command's.
  if (ending_ && !ending_->begun() && AsksToEnd(static_cast<int>(info.ssi_signo))) ending_.reset();
  // A shell sends SIGCONT to the whole group.
  if (info.ssi_signo == SIGCONT && !command.stopped_by_signal()) return;
  if (IsForCommand(info)) command.Send(static_cast<int>(info.ssi_signo));
}

// Of those that end or stop us: the trial has no terminal, so that what comes from one is ours.
void Session::OnTrialSignal(int signal) {
  if (AsksToEnd(signal)) {
    interrupted_by_ = signal;
    ending_->Begin();
  } else if (signal == SIGTSTP) {
    if (!stands_) Pause(SIGSTOP);
    signals_.StopAs(SIGTSTP);
    if (!stands_) Pause(SIGCONT);
  }
}

// One that has to end runs, or it could not.
void Session::TakeTurn(int64_t now_ns) {
  const auto& turns = options_.trial->turns;
  const bool stands = !ending_->begun() && turns && turns->stands(now_ns);
  if (stands == stands_) return;
  stands_ = stands;
  Pause(stands ? SIGSTOP : SIGCONT);
  if (stands) turns->stood();
}

// Its clock stands from the first signal on, and goes on with the first.
void Session::Pause(int signal) {
  const int64_t sent_ns = ending_->Pause(signal);
  WithRecorder([&](Recorder& recorder) {
    if (signal == SIGSTOP)
      recorder.clock().Stand(sent_ns);
    else
      recorder.clock().GoOn(sent_ns);
  });
}

// A signal from the terminal goes to the whole foreground group, so the command has it, too; one that
// somebody sends to us alone is passed on. Of those that the kernel sends to us alone, two are meant for the
// command: SIGHUP, which only the first process of a session gets when its terminal goes away, and an alarm
// that was set before we were started (`perl -e 'alarm 60; exec @ARGV'`), which the command lost by becoming
// a child. Signals raised by our own use of the processor or of files are our own business.
bool Session::IsForCommand(const signalfd_siginfo& info) {
  const int signal = static_cast<int>(info.ssi_signo);
  const bool from_kernel = info.ssi_code > 0;
  const bool leads_session = getsid(0) == getpid();
  if (from_kernel) return (signal == SIGHUP && leads_session) || signal == SIGALRM;
  return !witness_ || !witness_->SawToo(signal);
}

// The shell that waits for us sees a stopped job, as it would without us; `fg` and `bg` resume it. SIGSTOP
// was sent to the command alone, and whatever continues it will be, too: we follow only if a shell would
// otherwise wait for a job that stands still.
void Session::StopWithCommand(int signal) {
  status_.Hide();
  if (signal != SIGSTOP)
    signals_.StopAs(signal);
  else if (IsForeground(STDIN_FILENO) || IsForeground(STDERR_FILENO))
    signals_.StopAs(SIGTSTP);
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

RunResult Run(const RunOptions& options) { return Session(options).Run(); }

}  // namespace fullbore::collect
