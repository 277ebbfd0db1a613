#include "loader/bench/torch_peer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/guarded_file.h"
#include "base/temporary_directory.h"
#include "base/text.h"

namespace fullbore::loader::bench {

namespace {

// The script as a file, because spawned workers import it again, which standard input does not allow.
Result<std::string> WriteScript(const TemporaryDirectory& directory) {
  const std::string path = directory.path() + "/like_torch.py";
  if (auto written = WriteFileAtOnce(path, kTorchScript, kPrivateFile); !written) return written.error();
  return path;
}

std::string CommandLine(const TorchOptions& options, const std::string& script) {
  std::string words;
  for (const std::string& path : options.paths) words += ShellQuote(path) + " ";
  return fmt::format(
      "{} {} {} --image-size {} --batch-size {} --seconds {} --workers {} --limit {} 2>/dev/null",
      ShellQuote(options.python), ShellQuote(script), words, options.image_size, options.batch_size,
      options.seconds, fmt::join(options.workers, ","), options.limit);
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
  FILE* pipe = popen(CommandLine(options, *script).c_str(), "r");
  if (pipe == nullptr) return ErrnoError(fmt::format("cannot start '{}'", options.python), errno);
  std::optional<Error> failed;
  const auto tell = [&] {
    const size_t at = std::min(flow.torch.size(), options.workers.size() - 1);
    progress(fmt::format("PyTorch's DataLoader, {} workers", options.workers[at]),
             static_cast<double>(flow.torch.size()) / static_cast<double>(options.workers.size()));
  };
  tell();
  char line[4096];
  while (!failed && std::fgets(line, sizeof line, pipe) != nullptr) {
    failed = Take(line, flow);
    if (!failed) tell();
  }
  const int status = pclose(pipe);
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
