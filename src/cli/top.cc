// fullbore top: the runs that are being recorded, and the machine below them.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/ending_signals.h"
#include "base/exec.h"
#include "base/fd.h"
#include "base/print.h"
#include "base/printable.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "record/run_reader.h"
#include "report/terminal.h"
#include "top/json.h"
#include "top/layout.h"
#include "top/machine.h"
#include "top/runs.h"
#include "top/terminal.h"
#include "watch/runs_folder.h"

namespace fullbore::cli {

namespace {

constexpr int64_t kPeriodNs = kNsPerSecond;
// Of a core for all runs together: top as a whole keeps below 1 %.
constexpr double kForRuns = 0.005;
constexpr int kBetweenLooksMs = 20;  // at a report that is being printed

struct Flags {
  std::vector<std::string> directories;
  std::string root;  // for tests: a directory that holds proc/, sys/, dev/
  bool once = false, force = false;
  ResultFile json{"--json", kJsonResult};
};

// What ends the program is read from a descriptor, so that the terminal is given back on every way out.
class Ending {
 public:
  Ending() {
    const sigset_t set = EndingSignals();
    sigprocmask(SIG_BLOCK, &set, nullptr);
    fd_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  int fd() const { return fd_.get(); }
  // The signal that came, 0 for none.
  int Came() const {
    signalfd_siginfo info{};
    return read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  UniqueFd fd_;
};

// What `fullbore explain` says of the run, on the ordinary screen. Returns the signal that came meanwhile, 0 for none;
// it ends the report.
int PrintReport(const std::string& run_file, const Ending& ending) {
  SpawnOptions options;
  options.input = STDIN_FILENO;
  options.output = STDOUT_FILENO;
  options.errors = STDERR_FILENO;
  options.apart = SpawnOptions::Apart::kNo;  // in the terminal's foreground: Ctrl-C is for it, too
  options.usual_signals = true;
  pid_t pid = -1;
  if (const int error = Spawn({"/proc/self/exe", "explain", run_file}, options, pid); error != 0) {
    Print(stdout, "the report cannot be started: {}\n", std::strerror(error));
    return 0;
  }
  int came = 0;
  while (waitpid(pid, nullptr, WNOHANG) == 0) {
    pollfd end = {ending.fd(), POLLIN, 0};
    poll(&end, 1, kBetweenLooksMs);
    if (const int signal = ending.Came(); signal != 0) {
      came = signal;
      (void)kill(pid, signal);  // the terminal tells it, too, but others have told only us
    }
  }
  return came != 0 ? came : ending.Came();
}

// Returns the signal that came instead, 0 for none.
int AwaitEnter(const Ending& ending) {
  Print(stdout, "\nEnter: back to top ");
  std::fflush(stdout);
  while (true) {
    pollfd ready[] = {{STDIN_FILENO, POLLIN, 0}, {ending.fd(), POLLIN, 0}};
    poll(ready, 2, -1);
    if (const int signal = ending.Came(); signal != 0) return signal;
    char typed = 0;
    if (ready[0].revents != 0 && (read(STDIN_FILENO, &typed, 1) != 1 || typed == '\n' || typed == '\r'))
      return 0;
  }
}

class Top {
 public:
  explicit Top(const Flags& flags)
      : machine_(flags.root),
        folder_(flags.directories, {.of_a_core = kForRuns, .of_a_core_for_ended = 0},
                watch::KeepsIndex::kNo) {
    view_.unicode = LocaleIsUtf8();
  }

  void Look() {
    const int64_t now_ns = MonotonicNs();
    folder_.Tick(now_ns, WallNs());
    state_.machine = machine_.Read(now_ns);
    state_.runs = top::RunsOf(folder_);
  }
  // Rates need two looks.
  void LookTwice() {
    Look();
    poll(nullptr, 0, 1000);
    Look();
  }

  int Once() {
    LookTwice();
    const report::TerminalStyle style = report::StyleFor(STDOUT_FILENO);
    view_.columns = style.width;
    view_.rows = 1000;
    view_.unicode = style.unicode;
    std::vector<top::Line> lines = top::Layout(state_, view_);
    lines.pop_back();  // the keys
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    PrintLaidOut(stdout, top::ToText(lines, style.color));
    return 0;
  }

  int Json(const ResultFile& file, bool once) {
    const auto opened = file.Open();
    if (!opened) return Fail(opened.error(), kExitFailure);
    LookTwice();
    const Ending ending;
    while (true) {
      const auto written =
          WriteToEnd(opened->get(), top::ToJsonLine(state_, WallNs()), "'" + file.path + "'");
      // A reader that has seen enough is no failure.
      if (!written && written.error().code == ErrorCode::kUnavailable) return 0;
      if (!written) return Fail(written.error(), kExitFailure);
      if (once) return 0;
      pollfd end = {ending.fd(), POLLIN, 0};
      if (poll(&end, 1, 1000) > 0) return 0;
      Look();
    }
  }

  int FillTerminal() {
    const Ending ending;
    auto terminal = top::Terminal::Open(std::getenv("NO_COLOR") == nullptr);
    if (!terminal) return Fail(terminal.error(), kExitUsage);
    int64_t next_ns = 0;
    while (true) {
      if (MonotonicNs() >= next_ns) {
        Look();
        next_ns = MonotonicNs() + kPeriodNs;
      }
      view_.columns = terminal->columns();
      view_.rows = terminal->rows();
      terminal->Show(top::Layout(state_, view_));
      pollfd ready[] = {{STDIN_FILENO, POLLIN, 0}, {ending.fd(), POLLIN, 0}};
      poll(ready, 2, static_cast<int>(std::max<int64_t>(0, next_ns - MonotonicNs()) / kNsPerMs) + 1);
      if (const int signal = ending.Came(); signal != 0) return signal == SIGINT ? 0 : 128 + signal;
      if ((ready[0].revents & (POLLHUP | POLLERR)) != 0) return 0;  // the terminal is gone
      for (top::Key key = terminal->Read(); key != top::Key::kNone; key = terminal->Read()) {
        if (key == top::Key::kQuit) return 0;
        if (key != top::Key::kReport)
          On(key);
        else if (const int signal = ShowReport(*terminal, ending); signal != 0)
          return 128 + signal;
      }
    }
  }

 private:
  void On(top::Key key) {
    using top::Key;
    using top::Page;
    const bool overview = view_.page == Page::kOverview;
    const auto half = static_cast<size_t>(std::max(1, view_.rows / 2));
    if (key == Key::kByCpu) view_.sort = top::Sort::kCpu;
    if (key == Key::kByMemory) view_.sort = top::Sort::kMemory;
    if (key == Key::kByPid) view_.sort = top::Sort::kPid;
    if (key == Key::kHelp || key == Key::kBack || key == Key::kEnter) {
      view_.scroll = 0;
      view_.page = key == Key::kHelp ? (view_.page == Page::kHelp ? Page::kOverview : Page::kHelp)
                   : key == Key::kEnter && overview && !state_.runs.empty() ? Page::kRun
                                                                            : Page::kOverview;
    }
    if (key == Key::kPageDown) view_.scroll += half;
    if (key == Key::kPageUp) view_.scroll -= std::min(view_.scroll, half);
    if (key == Key::kUp || key == Key::kDown) {
      if (overview && !state_.runs.empty())
        Select(key == Key::kDown);
      else if (key == Key::kDown)
        ++view_.scroll;
      else
        view_.scroll -= std::min<size_t>(view_.scroll, 1);
    }
  }

  void Select(bool next) {
    const size_t now = top::SelectedRun(state_, view_);
    const size_t then = next ? std::min(now + 1, state_.runs.size() - 1) : now - std::min<size_t>(now, 1);
    view_.selected = state_.runs[then].name;
  }

  // Until Enter is pressed; Ctrl-C leads back, too. Returns the signal that ends top, 0 for none.
  int ShowReport(top::Terminal& terminal, const Ending& ending) {
    if (state_.runs.empty()) return 0;
    terminal.Leave();
    int signal = PrintReport(state_.runs[top::SelectedRun(state_, view_)].path, ending);
    if (signal == 0) signal = AwaitEnter(ending);
    terminal.Return();
    return signal == SIGINT ? 0 : signal;
  }

  top::MachineReader machine_;
  watch::RunsFolder folder_;
  top::State state_;
  top::View view_;
};

int RunTop(Flags flags) {
  (void)std::setlocale(LC_CTYPE, "");
  if (flags.directories.empty()) flags.directories = {kDefaultRunsDirectory};
  InputFiles inputs;
  for (const std::string& directory : flags.directories) {
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator(directory, unreadable)) {
      if (entry.path().extension() == record::kRunSuffix) inputs.Add(entry.path());
    }
  }
  if (auto judged = JudgeResults({&flags.json}, inputs, flags.force); !judged)
    return Fail(judged.error(), kExitUsage);
  Top top(flags);
  if (flags.json.wanted()) return top.Json(flags.json, flags.once);
  return flags.once ? top.Once() : top.FillTerminal();
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--dir,-o", flags->directories, "Where runs are kept; may be given several times")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  app.add_flag("--once", flags->once, "Print one frame, or with --json one object, and end");
  AddResult(app, flags->json, "Write one object a second to this file, a line each (docs/top.schema.json)");
  AddForce(app, flags->force);
  app.add_option("--root", flags->root, "Read the machine from this directory instead of /")
      ->group("")
      ->type_name("DIR");
  return [flags] { return RunTop(*flags); };
}

}  // namespace

const Subcommand kTop = {
    "top", "Watch the runs that are being recorded, and the machine below them",
    "fullbore top\n  fullbore top --once\n  fullbore top --json - | jq .machine.cpu_utilization", Define};

}  // namespace fullbore::cli
