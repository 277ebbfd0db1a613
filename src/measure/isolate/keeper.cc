#include "measure/isolate/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "measure/isolate/scratch.h"
#include "measure/probe/process/process_tree.h"

namespace fullbore::isolate {

namespace {

constexpr int64_t kRestNs = kNsPerSecond;             // for workers to notice that their parent is gone
constexpr int64_t kUnkillableNs = 10 * kNsPerSecond;  // after which nothing helps
constexpr timespec kPause = {0, 20'000'000};

struct Pipe {
  UniqueFd out, in;
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError("cannot make a pipe", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Error NoProcess(int error_number) {
  Error error = ErrnoError("cannot create a process for the command", error_number);
  error.code = ErrorCode::kUnavailable;
  return error;
}

// An error as bytes: its code, its text and its hint.
void Tell(int pipe, const Error& error) {
  const std::string bytes = std::string(1, static_cast<char>(error.code)) + error.text + '\0' + error.hint;
  (void)!write(pipe, bytes.data(), bytes.size());
}

std::optional<Error> Hear(int pipe) {
  std::string bytes(4096, '\0');
  ssize_t n;
  while ((n = read(pipe, bytes.data(), bytes.size())) < 0 && errno == EINTR) {
  }
  if (n <= 0) return std::nullopt;
  bytes.resize(static_cast<size_t>(n));
  const size_t end = bytes.find('\0', 1);
  return Error{static_cast<ErrorCode>(bytes[0]), bytes.substr(1, end - 1),
               end == std::string::npos ? "" : bytes.substr(end + 1)};
}

// What the keeper's process does after it has started the command.
class Watchman {
 public:
  Watchman(pid_t command, pid_t parent, int lifeline, int statuses)
      : command_(command), parent_(parent), lifeline_(lifeline), statuses_(statuses) {}

  void WaitUntilLetGo();
  void EndAll();
  bool parent_died() const { return getppid() != parent_; }

 private:
  bool Reap();  // false if there is nobody left

  const pid_t command_, parent_;
  const int lifeline_, statuses_;
  bool ended_ = false;
};

bool Watchman::Reap() {
  int status = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != command_) continue;
    ended_ = true;
    (void)!write(statuses_, &status, sizeof status);
    if (!parent_died()) (void)kill(parent_, SIGCHLD);
  }
  return pid == 0 || errno != ECHILD;
}

void Watchman::WaitUntilLetGo() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const UniqueFd children(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  pollfd ready[] = {{lifeline_, POLLIN, 0}, {children.get(), POLLIN, 0}};
  do {
    signalfd_siginfo ignored;
    while (read(children.get(), &ignored, sizeof ignored) > 0) {
    }
    (void)Reap();
    (void)poll(ready, 2, -1);
  } while (ready[0].revents == 0);
}

void Watchman::EndAll() {
  const int64_t begin_ns = MonotonicNs();
  while (Reap() && MonotonicNs() - begin_ns < kUnkillableNs) {
    const bool patient = ended_ && !parent_died() && MonotonicNs() - begin_ns < kRestNs;
    if (!patient) {
      for (const int64_t pid : probe::ProcessTree("/proc", getpid(), "").Scan())
        (void)kill(static_cast<pid_t>(pid), SIGKILL);
    }
    nanosleep(&kPause, nullptr);
  }
}

// Nothing of ours stays open in the keeper: another's pipe would not end, and another's lock would hold.
void CloseAllBut(int& lifeline, int& statuses, int lock) {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);  // closed below, with the rest
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) (void)dup2(nothing, standard);
  const int first = STDERR_FILENO + 1, high = 64;
  const int kept[] = {fcntl(lifeline, F_DUPFD_CLOEXEC, high), fcntl(statuses, F_DUPFD_CLOEXEC, high),
                      fcntl(lock, F_DUPFD_CLOEXEC, high)};
  for (int i = 0; i < 3; ++i) {
    if (kept[i] >= 0) (void)dup3(kept[i], first + i, O_CLOEXEC);
  }
  lifeline = first;
  statuses = first + 1;
  (void)close_range(static_cast<unsigned>(first + (lock >= 0 ? 3 : 2)), ~0U, 0);
}

[[noreturn]] void Keep(const std::function<Error()>& become, const std::vector<std::string>& scratches,
                       int lock, pid_t parent, int lifeline, int statuses, UniqueFd failures) {
  (void)setsid();
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
  (void)prctl(PR_SET_NAME, "fullbore-keeper");
  sigset_t all;
  sigfillset(&all);
  const pid_t keeper = getpid();
  const pid_t command = fork();
  if (command == 0) {
    (void)setsid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      Tell(failures.get(), getppid() == keeper ? become() : NoProcess(ESRCH));
    } catch (const std::exception& error) {  // no memory, a bug: what called us must not go on here
      Tell(failures.get(), {ErrorCode::kInternal, error.what(), ""});
    }
    _exit(1);
  }
  (void)sigprocmask(SIG_SETMASK, &all, nullptr);
  const int fork_error = errno;
  if (command < 0) Tell(failures.get(), NoProcess(fork_error));
  (void)!write(statuses, &command, sizeof command);
  failures.reset();
  if (command < 0) _exit(1);
  CloseAllBut(lifeline, statuses, lock);
  Watchman watchman(command, parent, lifeline, statuses);
  watchman.WaitUntilLetGo();
  watchman.EndAll();
  if (watchman.parent_died()) {
    for (const std::string& scratch : scratches) RemoveTree(scratch);
  }
  _exit(0);
}

}  // namespace

Result<Keeper> Keeper::Start(const std::function<Error()>& become, const std::vector<std::string>& scratches,
                             int lock) {
  auto lifeline = MakePipe(), statuses = MakePipe(), failures = MakePipe();
  for (const auto* pipe : {&lifeline, &statuses, &failures}) {
    if (!*pipe) return NoProcess(EMFILE);
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return NoProcess(errno);
  if (pid == 0) {
    lifeline->in.reset();
    failures->out.reset();
    Keep(become, scratches, lock, parent, lifeline->out.get(), statuses->in.get(), std::move(failures->in));
  }
  statuses->in.reset();
  failures->in.reset();
  Keeper keeper;
  keeper.pid_ = pid;
  keeper.lifeline_ = std::move(lifeline->in);
  keeper.statuses_ = std::move(statuses->out);
  if (read(keeper.statuses_.get(), &keeper.command_, sizeof keeper.command_) != sizeof keeper.command_)
    return NoProcess(ESRCH);
  (void)fcntl(keeper.statuses_.get(), F_SETFL, O_NONBLOCK);
  if (const auto error = Hear(failures->out.get())) return *error;
  return keeper;
}

std::optional<int> Keeper::status() {
  if (status_) return status_;
  int status = 0;
  const ssize_t got = read(statuses_.get(), &status, sizeof status);
  if (got == sizeof status) status_ = status;
  if (got == 0) status_ = SIGKILL;  // the keeper was killed, and took the command with it
  return status_;
}

void Keeper::EndRest() {
  if (!lifeline_.valid()) return;  // done, or moved away
  lifeline_.reset();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  (void)status();
}

}  // namespace fullbore::isolate
