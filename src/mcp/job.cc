#include "mcp/job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/exec.h"
#include "base/text.h"

namespace fullbore::mcp {

namespace {

constexpr size_t kMostKept = 256 << 10;             // of each of the two streams: their ends
constexpr int64_t kMostJsonBytes = 64 << 20;        // a report of a thousand ranks has some megabytes
constexpr int64_t kPatienceNs = 15 * kNsPerSecond;  // to end by itself: `run` writes its report then

struct Pipe {
  UniqueFd out, in;
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError("cannot make a pipe", errno);
  (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// The end of what a process printed.
class Kept {
 public:
  explicit Kept(UniqueFd from) : from_(std::move(from)) {}
  void Read();
  const std::string& text() const { return text_; }

 private:
  UniqueFd from_;
  std::string text_;
};

// A program that prints without end is not read without end: the rest comes with the next tick.
void Kept::Read() {
  char bytes[64 << 10];
  ssize_t got = 0;
  for (int i = 0; i < 16 && (got = read(from_.get(), bytes, sizeof bytes)) > 0; ++i) {
    text_.append(bytes, static_cast<size_t>(got));
    if (text_.size() > 2 * kMostKept) text_.erase(0, text_.size() - kMostKept);
  }
}

int StatusOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// In the child that becomes the program.
Error Become(const std::string& program, std::vector<std::string> words, int output, int errors) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (dup2(nothing, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0)
    return ErrnoError("cannot redirect what a call prints", errno);
  CloseOnExec(STDERR_FILENO + 1);
  sigset_t none;
  sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)signal(SIGPIPE, SIG_DFL);
  words.insert(words.begin(), "fullbore");
  const std::vector<char*> argv = Pointers(words);
  execv(program.c_str(), argv.data());
  return ErrnoError("cannot start '" + program + "'", errno);
}

class Process : public Job {
 public:
  Process(isolate::Keeper keeper, TemporaryDirectory scratch, UniqueFd output, UniqueFd errors)
      : scratch_(std::move(scratch)),
        output_(std::move(output)),
        errors_(std::move(errors)),
        keeper_(std::move(keeper)) {}

  std::optional<Ended> Tick(int64_t now_ns) override;
  void Stop(int64_t now_ns) override;
  std::string last_line() const override;

 private:
  std::string Json() const;

  TemporaryDirectory scratch_;
  Kept output_, errors_;
  isolate::Keeper keeper_;
  std::optional<int64_t> stopped_ns_;
};

std::string JsonIn(const TemporaryDirectory& scratch) { return scratch.path() + "/result.json"; }

std::string Process::Json() const {
  struct stat found {};
  if (stat(JsonIn(scratch_).c_str(), &found) != 0 || found.st_size > kMostJsonBytes) return "";
  auto text = ReadFile(JsonIn(scratch_));
  return text ? std::move(*text) : "";
}

std::optional<Ended> Process::Tick(int64_t now_ns) {
  output_.Read();
  errors_.Read();
  if (stopped_ns_ && now_ns - *stopped_ns_ > kPatienceNs) keeper_.EndRest();
  const auto status = keeper_.status();
  if (!status) return std::nullopt;
  keeper_.EndRest();
  output_.Read();
  errors_.Read();
  return Ended{StatusOf(*status), output_.text(), errors_.text(), Json()};
}

void Process::Stop(int64_t now_ns) {
  if (stopped_ns_) return;
  stopped_ns_ = now_ns;
  (void)kill(keeper_.command(), SIGTERM);
}

std::string Process::last_line() const {
  const std::string_view said = Trim(errors_.text());
  const size_t end = said.find_last_of('\n');
  return std::string(end == std::string_view::npos ? said : said.substr(end + 1));
}

}  // namespace

Result<std::unique_ptr<Job>> ProcessStarter::Start(const Call& call) {
  auto scratch = TemporaryDirectory::Make();
  if (!scratch) return scratch.error();
  auto output = MakePipe(), errors = MakePipe();
  if (!output || !errors) return (output ? errors : output).error();
  std::vector<std::string> words = call.words;
  if (call.tool->has_json) words.insert(words.end(), {"--json", JsonIn(*scratch)});
  words.insert(words.end(), call.behind.begin(), call.behind.end());
  auto keeper = isolate::Keeper::Start(
      [&] { return Become(program_, words, output->in.get(), errors->in.get()); }, {scratch->path()}, -1);
  if (!keeper) return keeper.error();
  return std::unique_ptr<Job>(std::make_unique<Process>(std::move(*keeper), std::move(*scratch),
                                                        std::move(output->out), std::move(errors->out)));
}

}  // namespace fullbore::mcp
