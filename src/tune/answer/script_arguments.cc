#include "tune/answer/script_arguments.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/captured.h"
#include "base/clock.h"
#include "base/guarded_file.h"
#include "base/text.h"

namespace fullbore::tune {

namespace {

using nlohmann::json;

constexpr int64_t kPatienceNs = 20 * kNsPerSecond;
// The sources come as pairs of arguments: isolated, Python finds no modules of ours.
constexpr const char* kStart = R"(
import sys, types
question, sources = sys.argv[1], sys.argv[2:]
sys.argv[1:] = [question]
for name, source in zip(sources[::2], sources[1::2]):
    module = sys.modules["__main__"] if name == "__main__" else types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), module.__dict__)
)";

std::string NameOf(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

// "python", "python3.11", "pypy3"
bool IsPython(std::string_view word) {
  const std::string name = NameOf(word);
  for (const std::string_view known : {"python", "pypy"}) {
    if (name.starts_with(known) && name.find_first_not_of("0123456789.", known.size()) == std::string::npos)
      return true;
  }
  return false;
}

// The file that a shell would run for this word; empty if there is none.
std::string ProgramOf(const std::string& word) {
  if (word.find('/') != std::string::npos) return word;
  const char* path = std::getenv("PATH");
  for (const std::string_view directory : Split(std::string_view(path ? path : ""), ':')) {
    std::string program = fmt::format("{}/{}", directory, word);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

// Of "#!/venv/bin/python3" and "#!/usr/bin/env python3", the interpreter.
std::string InterpreterOf(const std::string& program) {
  const auto file = OpenRegularFile(program);
  char begin[512];
  const ssize_t size = file ? read(file->get(), begin, sizeof begin) : 0;
  std::string_view line(begin, static_cast<size_t>(std::max<ssize_t>(0, size)));
  line = line.substr(0, line.find('\n'));
  if (!line.starts_with("#!")) return "";
  for (const std::string_view word : Words(line.substr(2))) {
    if (IsPython(word)) return std::string(word);
  }
  return "";
}

Result<json> Ask(const std::string& python, const std::string& question, std::string_view script) {
  std::vector<std::string> words = {python, "-I", "-S", "-W", "ignore", "-c", kStart, question};
  for (const auto& [name, source] : {std::pair<const char*, std::string_view>{"script_names", kScriptNames},
                                     {"argument_finder", kArgumentFinder},
                                     {"__main__", kFindArguments}}) {
    words.emplace_back(name);
    words.emplace_back(source);
  }
  const auto done = RunAndCapture(std::move(words), kPatienceNs, script);
  if (!done) return done.error();
  const std::string line = done->output.substr(0, done->output.find('\n'));
  auto said = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (said.is_object() && said.contains("edits")) return said;
  const std::string why =
      said.is_object() ? said.value("error", "") : fmt::format("exit status {}", done->status);
  return Error{ErrorCode::kUnavailable, fmt::format("'{}' cannot parse it: {}", python, why), ""};
}

ArgumentChanges ChangesFrom(const json& said, size_t size) {
  ArgumentChanges changes;
  size_t at = 0;
  for (const json& each : said["edits"]) {
    const auto begin = each[0].get<size_t>(), end = each[1].get<size_t>();
    if (begin < at || end < begin || end > size) return {};
    changes.edits.push_back({begin, end, each[2].get<std::string>()});
    at = end;
  }
  for (const json& each : said["by_hand"])
    changes.by_hand.push_back({each[0].get<std::string>(), each[1].get<int>(), each[2].get<std::string>()});
  return changes;
}

}  // namespace

std::vector<std::string> PythonsOf(const std::vector<std::string>& command) {
  std::vector<std::string> pythons;
  for (const std::string& word : command) {
    if (word.ends_with(".py")) break;  // what follows is for the script
    if (word.find('=') != std::string::npos || !IsPython(word)) continue;
    pythons.push_back(word);
    break;
  }
  if (!command.empty()) pythons.push_back(InterpreterOf(ProgramOf(command.front())));
  pythons.insert(pythons.end(), {"python3", "python"});
  std::vector<std::string> once;
  for (std::string& python : pythons) {
    if (!python.empty() && std::find(once.begin(), once.end(), python) == once.end())
      once.push_back(std::move(python));
  }
  return once;
}

Result<ArgumentChanges> FindArguments(std::string_view script, int line, const Settings& settings,
                                      const std::vector<std::string>& command) {
  const json question = {{"line", line}, {"settings", settings}, {"command", command}};
  const std::string text = question.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  std::optional<Error> first;
  for (const std::string& python : PythonsOf(command)) {
    const auto said = Ask(python, text, script);
    if (!said) {
      if (!first) first = said.error();
      continue;
    }
    try {
      return ChangesFrom(*said, script.size());
    } catch (const json::exception& error) {  // no Python of ours: a program that only has its name
      if (!first) first = Error{ErrorCode::kUnavailable, fmt::format("'{}': {}", python, error.what()), ""};
    }
  }
  return *first;
}

}  // namespace fullbore::tune
