#include "base/exec.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

extern char** environ;

namespace fullbore {

std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& added) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : added) entries.push_back(name + "=" + value);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.count(text.substr(0, text.find('=')))) entries.push_back(text);
  }
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

namespace {

// In the child: only async-signal-safe calls, up to Become.
void Give(int ours, int theirs, int mode) {
  if (ours == theirs) {
    (void)fcntl(ours, F_SETFD, 0);
    return;
  }
  const int from = ours >= 0 ? ours : open("/dev/null", mode | O_CLOEXEC);
  (void)dup2(from, theirs);
}

// Before the mask is lifted: a handler of ours has no business here.
void ResetSignals(bool ignored_too) {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0 || (action.sa_handler == SIG_IGN && !ignored_too)) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    (void)sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void Become(char* const* argv, char* const* envp, const SpawnOptions& options, pid_t parent,
                         int failure) {
  constexpr int kNotStarted = 127;
  if (!options.outlives_us) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kNotStarted);  // it died before that
  }
  if (options.apart == SpawnOptions::Apart::kGroup) (void)setpgid(0, 0);
  if (options.apart == SpawnOptions::Apart::kSession) (void)setsid();
  Give(options.input, STDIN_FILENO, O_RDONLY);
  Give(options.output, STDOUT_FILENO, O_WRONLY);
  Give(options.errors, STDERR_FILENO, O_WRONLY);
  ResetSignals(options.usual_signals);
  execvpe(argv[0], argv, envp);
  const int error_number = errno;
  (void)!write(failure, &error_number, sizeof error_number);
  _exit(kNotStarted);
}

// The error number with which the child could not become the program; 0 once it has.
int AwaitExec(int failure) {
  int error_number = 0;
  ssize_t got = 0;
  while ((got = read(failure, &error_number, sizeof error_number)) < 0 && errno == EINTR) {
  }
  return got == static_cast<ssize_t>(sizeof error_number) ? error_number : 0;
}

}  // namespace

// Not posix_spawn, which cannot ask for PR_SET_PDEATHSIG.
int Spawn(std::vector<std::string> words, const SpawnOptions& options, pid_t& pid) {
  std::vector<std::string> environment = EnvironmentWith(options.environment);
  const std::vector<char*> argv = Pointers(words), envp = Pointers(environment);
  pid = -1;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  const UniqueFd failure_out(ends[0]);
  UniqueFd low(ends[1]);
  // Above the three that the child is given, even where ours were closed.
  UniqueFd failure_in(fcntl(low.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  low.reset();
  if (!failure_in.valid()) return errno;
  sigset_t all, before;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) Become(argv.data(), envp.data(), options, parent, failure_in.get());
  const int fork_error = errno;
  (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return fork_error;
  failure_in.reset();
  if (const int error_number = AwaitExec(failure_out.get()); error_number != 0) {
    (void)waitpid(child, nullptr, 0);
    return error_number;
  }
  pid = child;
  return 0;
}

}  // namespace fullbore
