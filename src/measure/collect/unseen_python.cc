#include "measure/collect/unseen_python.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/fd.h"
#include "base/secrets.h"
#include "base/text.h"

namespace fullbore::collect {

namespace {

constexpr size_t kMaxReasons = 16;  // further ones would repeat the same for other processes

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

struct Interpreter {
  std::string options;  // those without arguments, in order
  std::string program;  // the script or module; empty for code on the command line or a session
};

// Parses the command line as Python does: letters may be combined, and everything after -c
// or -m belongs to the program.
Interpreter ReadOptions(const std::vector<std::string>& words) {
  Interpreter read;
  for (size_t at = 1; at < words.size(); ++at) {
    const std::string& word = words[at];
    const std::string following = at + 1 < words.size() ? words[at + 1] : "";
    if (word == "--check-hash-based-pycs") {
      ++at;
      continue;
    }
    if (word == "--" || word == "-" || !word.starts_with('-')) {
      read.program = word.starts_with('-') ? (word == "--" ? following : "") : word;
      return read;
    }
    for (size_t i = 1; i < word.size(); ++i) {
      const std::string rest = word.substr(i + 1);
      if (word[i] == 'c') return read;
      if (word[i] == 'm') {
        read.program = rest.empty() ? following : rest;
        return read;
      }
      if (word[i] == 'W' || word[i] == 'X') {
        if (rest.empty()) ++at;
        break;
      }
      read.options += word[i];
    }
  }
  return read;
}

std::optional<std::string> ValueOf(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& entry : environment) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::vector<std::string> Entries(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text) return {};
  std::vector<std::string> entries;
  for (const std::string_view entry : Split(*text, '\0')) entries.emplace_back(entry);
  while (!entries.empty() && entries.back().empty()) entries.pop_back();
  return entries;
}

}  // namespace

std::string WhyUnseen(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                      const std::string& hook_directory) {
  if (words.empty() || !BaseName(words[0]).starts_with("python")) return "";
  const Interpreter python = ReadOptions(words);
  const std::string what = python.program.empty()
                               ? "a Python process"
                               : fmt::format("'{}'", MaskSecrets(BaseName(python.program)));
  for (const char option : {'I', 'E', 'S'}) {
    if (python.options.find(option) == std::string::npos) continue;
    return fmt::format(
        "{} was started with python -{}, which {}: its training steps are not recorded; remove that option",
        what, option,
        option == 'S' ? "skips sitecustomize, which loads the hook"
                      : "ignores PYTHONPATH, through which the hook is loaded");
  }
  const std::string path = ValueOf(environment, "PYTHONPATH").value_or("");
  const std::vector<std::string_view> entries = Split(path, ':');
  if (std::ranges::find(entries, std::string_view(hook_directory)) != entries.end()) return "";
  return fmt::format(
      "{} was started with a PYTHONPATH that lacks the hook: its training steps are not recorded; if a "
      "script sets PYTHONPATH, append :$PYTHONPATH to it",
      what);
}

void UnseenPythons::Look(const std::vector<record::Process>& processes) {
  if (hook_directory_.empty()) return;
  for (const record::Process& process : processes) {
    if (process.end_ns != 0 || reasons_.size() >= kMaxReasons) continue;
    std::string& looked_at = looked_at_[process.pid];
    if (looked_at == process.command) continue;
    const std::string directory = fmt::format("{}/proc/{}", root_, process.pid);
    const std::vector<std::string> environment = Entries(directory + "/environ");
    if (environment.empty()) continue;  // in the middle of an exec, or another user's: nothing is known
    const std::string why = WhyUnseen(Entries(directory + "/cmdline"), environment, hook_directory_);
    looked_at = process.command;
    if (!why.empty()) reasons_[process.pid] = why;
  }
}

}  // namespace fullbore::collect
