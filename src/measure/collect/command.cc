#include "measure/collect/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/ending_signals.h"
#include "base/exec.h"
#include "base/fd.h"
#include "base/secrets.h"

namespace fullbore::collect {

namespace {

Error NoProcess(int error_number) {
  Error error = ErrnoError("cannot create a process for the command", error_number);
  error.code = ErrorCode::kUnavailable;
  return error;
}

Error NotExecutable(const std::string& word, int error_number) {
  Error error = ErrnoError("cannot run '" + MaskSecrets(word) + "'", error_number);
  if (error.code != ErrorCode::kNotFound) error.code = ErrorCode::kPermission;
  return error;
}

// In the forked child.
Error BecomeApart(const Command::Apart& apart, const char* const* argv, char* const* envp,
                  const InheritedSignals& signals) {
  if (auto gone = isolate::GoApart(apart.files); !gone) return gone.error();
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (dup2(nothing, STDIN_FILENO) < 0 || dup2(apart.output, STDOUT_FILENO) < 0 ||
      dup2(apart.output, STDERR_FILENO) < 0)
    return ErrnoError("cannot redirect what the command reads and prints", errno);
  // A file that a shell left open for writing (`exec 3>>log`) is the user's, too.
  CloseOnExec(STDERR_FILENO + 1);
  // Where the machine runs out of memory, this and what it starts is what the kernel ends: nobody will miss it.
  if (const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); score >= 0)
    (void)!write(score, "1000", 4);
  signals.Restore();
  execvpe(argv[0], const_cast<char* const*>(argv), envp);
  return NotExecutable(argv[0], errno);
}

}  // namespace

Result<Command> Command::Start(const std::vector<std::string>& words,
                               const std::map<std::string, std::string>& environment,
                               const InheritedSignals& signals, const std::optional<Apart>& apart) {
  std::vector<std::string> arguments = words;
  std::vector<std::string> entries = EnvironmentWith(environment);
  std::vector<char*> argv = Pointers(arguments);
  std::vector<char*> envp = Pointers(entries);
  if (apart) return StartApart(argv, envp, signals, *apart);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return NoProcess(errno);
  UniqueFd failure_out(ends[0]), failure_in(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return NoProcess(errno);
  if (pid == 0) {  // from here on, only async-signal-safe calls
    signals.Restore();
    execvpe(argv[0], argv.data(), envp.data());
    const int error_number = errno;
    (void)!write(failure_in.get(), &error_number, sizeof error_number);
    _exit(error_number == ENOENT ? kStatusNotFound : kStatusNotExecutable);
  }
  failure_in.reset();
  int error_number = 0;
  ssize_t n;
  while ((n = read(failure_out.get(), &error_number, sizeof error_number)) < 0 && errno == EINTR) {
  }
  if (n == static_cast<ssize_t>(sizeof error_number)) {
    waitpid(pid, nullptr, 0);
    return NotExecutable(words[0], error_number);
  }
  Command command;
  command.pid_ = pid;
  return command;
}

Result<Command> Command::StartApart(std::vector<char*>& argv, std::vector<char*>& envp,
                                    const InheritedSignals& signals, const Apart& apart) {
  auto keeper = isolate::Keeper::Start([&] { return BecomeApart(apart, argv.data(), envp.data(), signals); },
                                       apart.removed_if_we_die, apart.scratch_lock);
  if (!keeper) return keeper.error();
  Command command;
  command.pid_ = keeper->command();
  command.keeper_.emplace(std::move(*keeper));
  return command;
}

Result<Command> Command::StartedBy(Starter& starter, const std::map<std::string, std::string>& environment) {
  const auto first = starter.WaitForTask(environment);
  if (!first) return first.error();
  Command command;
  command.pid_ = *first;
  command.starter_ = &starter;
  return command;
}

Error Command::Become(const std::vector<std::string>& words, const InheritedSignals& signals) {
  std::vector<std::string> arguments = words;
  std::vector<char*> argv = Pointers(arguments);
  signals.Restore();
  execvp(argv[0], argv.data());
  return NotExecutable(words[0], errno);
}

void Command::Send(int signal) {
  if (starter_)
    left_ = left_ || AsksToEnd(signal);
  else if (!exit_status_)
    kill(pid_, signal);
}

Command::Change Command::Poll() {
  if (exit_status_) return Change::kEnded;
  if (keeper_) {
    const auto ended = keeper_->status();
    if (!ended) return Change::kNone;
    SetEnd(*ended);
    return Change::kEnded;
  }
  if (starter_) return PollStarter();
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG | WUNTRACED | WCONTINUED) != pid_) return Change::kNone;
  stopped_by_signal_.reset();
  if (WIFCONTINUED(status)) return Change::kContinued;
  if (WIFSTOPPED(status)) {
    stopped_by_signal_ = WSTOPSIG(status);
    return Change::kStopped;
  }
  SetEnd(status);
  return Change::kEnded;
}

Command::Change Command::PollStarter() {
  if (!starter_->IsOver()) return left_ ? Change::kEnded : Change::kNone;
  if (starter_->status()) SetEnd(*starter_->status());
  return Change::kEnded;
}

void Command::SetEnd(int status) {
  if (WIFSIGNALED(status)) ended_by_signal_ = WTERMSIG(status);
  exit_status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Command::EndRest() {
  if (keeper_) keeper_->EndRest();
}

}  // namespace fullbore::collect
