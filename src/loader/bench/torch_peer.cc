#include "loader/bench/torch_peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/exec.h"
#include "base/fd.h"
#include "base/guarded_file.h"
#include "base/temporary_directory.h"

namespace fullbore::loader::bench {

namespace {

// The script as a file, because spawned workers import it again, which standard input does not allow.
Result<std::string> WriteScript(const TemporaryDirectory& directory) {
  const std::string path = directory.path() + "/like_torch.py";
  if (auto written = WriteFileAtOnce(path, kTorchScript, kPrivateFile); !written) return written.error();
  return path;
}

std::vector<std::string> WordsOf(const TorchOptions& options, const std::string& script) {
  std::vector<std::string> words = {options.python, script};
  words.insert(words.end(), options.paths.begin(), options.paths.end());
  const auto add = [&](const char* name, const auto& value) {
    words.insert(words.end(), {name, fmt::format("{}", value)});
  };
  add("--image-size", options.image_size);
  add("--batch-size", options.batch_size);
  add("--seconds", options.seconds);
  add("--workers", fmt::format("{}", fmt::join(options.workers, ",")));
  add("--limit", options.limit);
  return words;
}

struct Closer {
  void operator()(FILE* file) const { std::fclose(file); }
};

// A program at work, and what it prints.
struct Started {
  pid_t pid = -1;
  std::unique_ptr<FILE, Closer> output;
};

// In our own group: the terminal's Ctrl-C is for it, too.
Result<Started> Start(std::vector<std::string> words) {
  const std::string program = words[0];
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(fmt::format("cannot start '{}'", program), errno);
  Started started;
  started.output.reset(fdopen(ends[0], "r"));
  const UniqueFd theirs(ends[1]);
  SpawnOptions options;
  options.output = theirs.get();
  options.apart = SpawnOptions::Apart::kNo;
  if (const int error = Spawn(std::move(words), options, started.pid); error != 0)
    return ErrnoError(fmt::format("cannot start '{}'", program), error);
  return started;
}

// One line of the script's output.
std::optional<Error> Take(const std::string& line, Flow& flow) {
  const auto said = nlohmann::json::parse(line, nullptr, false);
  if (!said.is_object()) return std::nullopt;
  if (said.contains("error")) {
    return Error{ErrorCode::kUnavailable, "PyTorch was not measured: " + said.value("error", ""),
                 said.value("hint", "")};
  }
  if (said.contains("versions")) flow.torch_versions = said.value("versions", "");
  if (said.contains("samples_per_s")) {
    flow.torch.push_back({said.value("workers", 0), said.value("samples_per_s", 0.0)});
  }
  return std::nullopt;
}

}  // namespace

Result<void> MeasureTorch(const TorchOptions& options, Flow& flow, const Progress& progress,
                          const std::atomic<bool>& stop) {
  const auto directory = TemporaryDirectory::Make();
  if (!directory) return directory.error();
  auto script = WriteScript(*directory);
  if (!script) return script.error();
  auto peer = Start(WordsOf(options, *script));
  if (!peer)
    return Error{peer.error().code, peer.error().text, "--python names the interpreter of the training"};
  std::optional<Error> failed;
  const auto tell = [&] {
    const size_t at = std::min(flow.torch.size(), options.workers.size() - 1);
    progress(fmt::format("PyTorch's DataLoader, {} workers", options.workers[at]),
             static_cast<double>(flow.torch.size()) / static_cast<double>(options.workers.size()));
  };
  tell();
  char line[4096];
  while (!failed && std::fgets(line, sizeof line, peer->output.get()) != nullptr) {
    failed = Take(line, flow);
    if (!failed) tell();
  }
  peer->output.reset();  // where it failed, the rest is of no use
  int status = 0;
  (void)waitpid(peer->pid, &status, 0);
  if (failed) return *failed;
  if (status != 0 && !stop.load()) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("PyTorch was not measured: '{}' ended with status {}", options.python,
                             WIFEXITED(status) ? WEXITSTATUS(status) : status),
                 "--python names the interpreter of the training"};
  }
  return {};
}

}  // namespace fullbore::loader::bench
