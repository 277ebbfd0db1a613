#include "measure/collect/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/exec.h"
#include "base/fd.h"
#include "base/secrets.h"
#include "measure/collect/write_guard.h"

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

// In the forked child: only async-signal-safe calls.
void SetApart(const Command::Apart& apart, pid_t parent) {
  (void)setsid();
  (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kStatusNotExecutable);  // it died before that
  const int nothing = open("/dev/null", O_RDONLY);
  (void)dup2(nothing, STDIN_FILENO);
  if (nothing > STDERR_FILENO) close(nothing);
  (void)dup2(apart.output, STDOUT_FILENO);
  (void)dup2(apart.output, STDERR_FILENO);
  // Where the machine runs out of memory, this and what it starts is what the kernel ends: nobody will miss it.
  if (const int score = open("/proc/self/oom_score_adj", O_WRONLY); score >= 0) {
    (void)!write(score, "1000", 4);
    close(score);
  }
  EnterWriteGuard(apart.write_guard);
}

}  // namespace

Result<Command> Command::Start(const std::vector<std::string>& words,
                               const std::map<std::string, std::string>& environment,
                               const InheritedSignals& signals, const std::optional<Apart>& apart) {
  std::vector<std::string> arguments = words;
  std::vector<std::string> entries = EnvironmentWith(environment);
  std::vector<char*> argv = Pointers(arguments);
  std::vector<char*> envp = Pointers(entries);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return NoProcess(errno);
  UniqueFd failure_out(ends[0]), failure_in(ends[1]);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return NoProcess(errno);
  if (pid == 0) {  // from here on, only async-signal-safe calls
    signals.Restore();
    if (apart) SetApart(*apart, parent);
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

Error Command::Become(const std::vector<std::string>& words, const InheritedSignals& signals) {
  std::vector<std::string> arguments = words;
  std::vector<char*> argv = Pointers(arguments);
  signals.Restore();
  execvp(argv[0], argv.data());
  return NotExecutable(words[0], errno);
}

void Command::Send(int signal) const {
  if (!exit_status_) kill(pid_, signal);
}

Command::Change Command::Poll() {
  int status = 0;
  if (exit_status_) return Change::kEnded;
  if (waitpid(pid_, &status, WNOHANG | WUNTRACED | WCONTINUED) != pid_) return Change::kNone;
  stopped_by_signal_.reset();
  if (WIFCONTINUED(status)) return Change::kContinued;
  if (WIFSTOPPED(status)) {
    stopped_by_signal_ = WSTOPSIG(status);
    return Change::kStopped;
  }
  if (WIFSIGNALED(status)) ended_by_signal_ = WTERMSIG(status);
  exit_status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return Change::kEnded;
}

}  // namespace fullbore::collect
