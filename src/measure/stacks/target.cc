#include "measure/stacks/target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/text.h"
#include "base/trusted_path.h"

namespace fullbore::stacks {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kCapSysPtrace = uint64_t{1} << 19;  // capabilities(7)

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string LinkOf(const std::string& path) {
  std::error_code unknown;
  return fs::read_symlink(path, unknown).string();
}

std::string FieldOf(const std::string& status, std::string_view name) {
  for (const std::string_view line : Split(status, '\n')) {
    if (line.starts_with(name)) return std::string(Trim(line.substr(name.size())));
  }
  return "";
}

bool IsPython(const std::string& directory) {
  const std::string exe = fs::path(LinkOf(directory + "/exe")).filename().string();
  return exe.starts_with("python") || TextOf(directory + "/maps").find("/libpython") != std::string::npos;
}

std::vector<std::string> CommandOf(const std::string& directory) {
  std::vector<std::string> words;
  const std::string text = TextOf(directory + "/cmdline");
  for (const std::string_view word : Split(text, '\0')) words.emplace_back(word);
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

// The first descendant that runs Python: of a shell, a launcher or a scheduler's step.
std::optional<int64_t> PythonBelow(const std::string& proc, int64_t pid, int depth = 0) {
  constexpr int kDeepest = 8;
  if (depth > kDeepest) return std::nullopt;
  const std::string children = TextOf(fmt::format("{}/{}/task/{}/children", proc, pid, pid));
  for (const std::string_view word : Words(children)) {
    const auto child = ParseInt(word);
    if (!child) continue;
    if (IsPython(fmt::format("{}/{}", proc, *child))) return child;
    if (const auto below = PythonBelow(proc, *child, depth + 1)) return below;
  }
  return std::nullopt;
}

Error NotPython(const std::string& proc, int64_t pid, const std::string& status) {
  const auto below = PythonBelow(proc, pid);
  return {ErrorCode::kUnsupported,
          fmt::format("process {} ({}) does not run Python: only Python's stacks can be read", pid,
                      FieldOf(status, "Name:")),
          below ? fmt::format("its child {} does: fullbore explain --pid {}", *below, *below)
                : "name the process that trains; `fullbore top` and `ps -C python3` list them"};
}

// The kernel says only "not permitted": which of its rules it was.
Error NotPermitted(const std::string& root, int64_t pid, uint32_t owner, const Asker& asker) {
  const std::string proc = root + "/proc";
  const std::string again = fmt::format("sudo fullbore explain --pid {}", pid);
  const std::string what = fmt::format("process {} may not be looked into", pid);
  const bool elsewhere = LinkOf(fmt::format("{}/{}/ns/pid", proc, pid)) != LinkOf(proc + "/self/ns/pid");
  if (owner != asker.user && asker.user != 0) {
    return {ErrorCode::kPermission,
            fmt::format("{}: it belongs to the user {}{}", what, UserName(owner),
                        elsewhere ? ", and runs in a container" : ""),
            again + ", or ask that user to run it"};
  }
  if (elsewhere) {
    return {ErrorCode::kPermission, what + ": it runs in a container",
            again + " on the host; or inside the container, started with --cap-add SYS_PTRACE"};
  }
  const auto scope = ParseInt(Trim(TextOf(proc + "/sys/kernel/yama/ptrace_scope")));
  if (scope && *scope > 0) {
    return {ErrorCode::kPermission,
            fmt::format("{}: the kernel's ptrace_scope is {}, which {}", what, *scope,
                        *scope == 1   ? "lets a process look only into its own children"
                        : *scope == 2 ? "lets only root look into processes"
                                      : "lets nobody look into processes until the next boot"),
            *scope >= 3 ? "next time, run it as: fullbore run -- COMMAND"
                        : again + "; or, until the next boot: sudo sysctl kernel.yama.ptrace_scope=0"};
  }
  return {ErrorCode::kPermission, what + ": it lacks the capability SYS_PTRACE here, as in most containers",
          "start the container with --cap-add SYS_PTRACE; or run it as: fullbore run -- COMMAND"};
}

std::optional<std::string> PySpyIn(const std::string& directory) {
  const std::string path = directory + "/py-spy";
  if (directory.empty() || access(path.c_str(), X_OK) != 0) return std::nullopt;
  return path;
}

Error NotTrusted(const std::string& py_spy, const Error& why) {
  return {ErrorCode::kPermission,
          fmt::format("the py-spy beside the process's own Python, '{}', is not run, since it could be "
                      "somebody else's: {}",
                      py_spy, why.text),
          "pip install py-spy: one in your own $PATH is used first"};
}

}  // namespace

Asker Asker::Ourselves() {
  const std::string effective = FieldOf(TextOf("/proc/self/status"), "CapEff:");
  return {geteuid(), (std::strtoull(effective.c_str(), nullptr, 16) & kCapSysPtrace) != 0};
}

Result<Target> Examine(const std::string& root, int64_t pid, const Asker& asker) {
  const std::string proc = root + "/proc", directory = fmt::format("{}/{}", proc, pid);
  struct stat status {};
  if (pid <= 0 || stat(directory.c_str(), &status) != 0) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no process {}", pid),
                 "`fullbore top` and `ps -C python3` list processes; a number from inside a container is not "
                 "the host's"};
  }
  const std::string said = TextOf(directory + "/status");
  if (FieldOf(said, "State:").starts_with('Z'))
    return Error{ErrorCode::kNotFound, fmt::format("process {} has ended already", pid), ""};
  // The owner by its status: the directory of a process that may not be dumped belongs to root.
  const std::vector<std::string_view> users =
      Words(std::string_view(said).substr(std::min(said.size(), said.find("Uid:"))));
  const auto owner =
      static_cast<uint32_t>(users.size() > 1 ? ParseInt(users[1]).value_or(status.st_uid) : status.st_uid);
  // Opening a process's memory asks the kernel's question itself (ptrace(2), "access mode checking").
  const bool permitted = access((directory + "/mem").c_str(), R_OK) == 0 &&
                         close(open((directory + "/mem").c_str(), O_RDONLY | O_CLOEXEC)) == 0;
  if (!permitted && !asker.may_trace_all) return NotPermitted(root, pid, owner, asker);
  if (!IsPython(directory)) return NotPython(proc, pid, said);
  return Target{pid, LinkOf(directory + "/exe"), LinkOf(directory + "/cwd"), CommandOf(directory)};
}

Result<std::string> FindPySpy(const Target& target) {
  if (const char* path = std::getenv("PATH")) {
    for (const std::string_view directory : Split(path, ':')) {
      if (const auto found = PySpyIn(std::string(directory))) return *found;
    }
  }
  // A virtual environment's Python is a link, and the command names the link. Both names are the process's own choice:
  // one of another user may name any folder, and what lies there would run as us.
  std::optional<Error> refused;
  for (const std::string& python : {target.command.empty() ? "" : target.command[0], target.python}) {
    const auto found = python.starts_with('/') ? PySpyIn(fs::path(python).parent_path()) : std::nullopt;
    if (!found) continue;
    auto trusted = TrustedPath(*found, Others::kNone);
    if (trusted) return *trusted;
    if (!refused) refused = NotTrusted(*found, trusted.error());
  }
  if (const auto found = PySpyIn(fs::path(LinkOf("/proc/self/exe")).parent_path())) return *found;
  if (refused) return *refused;
  return Error{
      ErrorCode::kUnavailable,
      fmt::format(
          "py-spy, which reads the stacks of a running Python, is not installed: not in $PATH, beside "
          "the process's own Python ('{}') or beside this program",
          fs::path(target.python).parent_path().string()),
      "pip install py-spy"};
}

}  // namespace fullbore::stacks
