#include "watch/track/wandb.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "base/exec.h"
#include "watch/track/client_sources.h"

namespace fullbore::watch {

namespace {

using Json = nlohmann::json;

// A start imports the client and asks a server; the end waits until all is there.
constexpr int64_t kStartNs = 120 * kNsPerSecond, kSendNs = 60 * kNsPerSecond, kEndNs = 600 * kNsPerSecond;

Attempt Failed(const std::string& problem) { return {Attempt::End::kFailed, problem}; }

// It may answer or end meanwhile; a client that takes no more is as good as gone.
bool WriteLine(int fd, const std::string& line, int64_t deadline_ns) {
  for (size_t done = 0; done < line.size();) {
    pollfd ready = {fd, POLLOUT, 0};
    const int64_t left_ms = (deadline_ns - MonotonicNs()) / kNsPerMs;
    if (left_ms <= 0 || poll(&ready, 1, static_cast<int>(left_ms)) <= 0) return false;
    const ssize_t wrote = send(fd, line.data() + done, line.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote < 0 && errno != EAGAIN) return false;
    done += static_cast<size_t>(std::max<ssize_t>(0, wrote));
  }
  return true;
}

// Empty if it has none by then.
std::string ReadLine(int fd, int64_t deadline_ns) {
  constexpr size_t kMost = 1 << 16;
  std::string line;
  char byte = 0;
  while (line.size() < kMost) {
    pollfd ready = {fd, POLLIN, 0};
    const int64_t left_ms = (deadline_ns - MonotonicNs()) / kNsPerMs;
    if (left_ms <= 0 || poll(&ready, 1, static_cast<int>(left_ms)) <= 0 || read(fd, &byte, 1) <= 0) return "";
    if (byte == '\n') return line;
    line += byte;
  }
  return "";
}

// What wandb takes as a run's id.
std::string IdOf(std::string run) {
  for (char& each : run) {
    if (!std::isalnum(static_cast<unsigned char>(each)) && each != '-' && each != '_') each = '_';
  }
  return run.substr(0, 128);
}

Json InWords(const Sample& sample) {
  Json values = Json::object();
  for (const Value& value : sample.values) values[NameOf(value.key)] = value.value;
  values["fullbore/step"] = sample.step;
  values["_timestamp"] = static_cast<double>(sample.wall_ns) / kNsPerSecond;
  return values;
}

}  // namespace

std::string PythonOf(const std::vector<std::string>& command, const std::filesystem::path& directory) {
  const std::filesystem::path program = command.empty() ? "" : command.front();
  if (!program.filename().string().starts_with("python")) return "python3";
  return program.has_parent_path() ? (directory / program).string() : program.string();
}

Wandb::~Wandb() { Stop(); }

void Wandb::Stop() {
  words_.reset();
  answers_.reset();
  if (pid_ <= 0) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

Attempt Wandb::Start(const TrackedRun& run) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Failed("no socket can be made");
  words_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  answers_.reset(fcntl(ends[0], F_DUPFD_CLOEXEC, 0));
  SpawnOptions options;
  options.input = options.output = theirs.get();
  options.usual_signals = true;
  const std::string python = run.is_live ? PythonOf(run.words, run.directory) : "python3";
  if (const int error = Spawn({python, "-c", std::string(kWandbClient)}, options, pid_); error != 0)
    return {Attempt::End::kRefused, fmt::format("{} cannot be started: {}", python, std::strerror(error))};
  return {Attempt::End::kDelivered, ""};
}

// It answers {"ok": true}, or why not: {"problem": "...", "final": true}.
Attempt Wandb::Tell(const Json& message, int64_t patience_ns) {
  const int64_t deadline_ns = MonotonicNs() + patience_ns;
  const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const bool told = WriteLine(words_.get(), line, deadline_ns);
  const auto answer =
      Json::parse(told ? ReadLine(answers_.get(), deadline_ns) : "", nullptr, /*allow_exceptions=*/false);
  if (answer.is_object() && answer.value("ok", false)) return {Attempt::End::kDelivered, ""};
  if (!answer.is_object()) return Failed("its client has ended, or does not answer");
  return {answer.value("final", false) ? Attempt::End::kRefused : Attempt::End::kFailed,
          answer.value("problem", "")};
}

Attempt Wandb::Begin(const TrackedRun& run) {
  Stop();
  if (Attempt started = Start(run); started.end != Attempt::End::kDelivered) return started;
  return Tell({{"begin",
                {{"project", project_},
                 {"id", IdOf(run.id)},
                 {"name", run.id},
                 {"directory", run.is_live ? run.directory : "."},
                 {"config", {{"command", run.command}, {"host", run.host}, {"tags", run.tags}}}}}},
              kStartNs);
}

Attempt Wandb::Send(const std::vector<Sample>& samples) {
  Json all = Json::array();
  for (const Sample& sample : samples) all.push_back(InWords(sample));
  return Tell({{"samples", all}}, kSendNs);
}

Attempt Wandb::End(const TrackedRun&, const Conclusion& conclusion) {
  const Judgement& judgement = conclusion.judgement;
  Json summary = Json::object();
  if (!judgement.finding.empty()) {
    summary = {{"fullbore/finding", judgement.finding}, {"fullbore/verdict", judgement.verdict}};
    if (!judgement.change.empty()) summary["fullbore/change"] = judgement.change;
  }
  return Tell({{"end", {{"summary", summary}, {"failed", conclusion.failed}}}}, kEndNs);
}

}  // namespace fullbore::watch
