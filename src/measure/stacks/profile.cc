#include "measure/stacks/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"

namespace fullbore::stacks {

namespace {

constexpr std::string_view kPackages[] = {"/site-packages/", "/dist-packages/"};
// Ours, wherever they are imported from.
constexpr std::string_view kOurs[] = {"/fullbore/data/", "/fullbore/hook/", "/fullbore/loops.py"};

// What follows the standard library's folder, ".../lib/python3.11/"; nothing for another file.
std::optional<std::string_view> InStandardLibrary(std::string_view file) {
  constexpr std::string_view kFolder = "/lib/python3.";
  const size_t at = file.find(kFolder);
  if (at == std::string_view::npos) return std::nullopt;
  const size_t end = file.find('/', at + kFolder.size());
  if (end == std::string_view::npos) return std::nullopt;
  return file.substr(end + 1);
}

std::string Dotted(std::string_view path) {
  if (path.ends_with(".py")) path.remove_suffix(3);
  if (path.ends_with("/__init__")) path.remove_suffix(9);
  std::string dotted(path);
  std::replace(dotted.begin(), dotted.end(), '/', '.');
  return dotted;
}

Frame FrameOf(const nlohmann::json& json) {
  Frame frame;
  frame.function = json.at("name").get<std::string>();
  frame.function.erase(0, frame.function.rfind('.') + 1);
  frame.file = json.value("file", "");
  const auto line = json.find("line");
  if (line != json.end() && line->is_number_integer()) frame.line = line->get<int>();
  frame.module = ModuleOf(frame.file);
  frame.is_user = frame.module.empty() &&
                  (!frame.file.starts_with('<') || frame.file == "<string>" || frame.file == "<stdin>");
  return frame;
}

// Of `Process 5931 Thread 5931 "MainThread"`.
Thread ThreadNamed(const std::string& name) {
  Thread thread;
  const std::vector<std::string_view> words = Words(name);
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "Process" && thread.pid == 0) thread.pid = ParseInt(words[i + 1]).value_or(0);
  }
  const size_t quote = name.find('"');
  if (quote != std::string::npos) thread.name = name.substr(quote + 1, name.rfind('"') - quote - 1);
  return thread;
}

Profile ProfileOf(const nlohmann::json& json) {
  Profile profile;
  for (const auto& frame : json.at("shared").at("frames")) profile.frames.push_back(FrameOf(frame));
  for (const auto& one : json.at("profiles")) {
    Thread thread = ThreadNamed(one.at("name").get<std::string>());
    for (const auto& sample : one.at("samples")) {
      auto stack = sample.get<Stack>();
      std::erase_if(stack, [&](uint32_t frame) { return frame >= profile.frames.size(); });
      if (!stack.empty()) thread.samples.push_back(std::move(stack));
    }
    profile.threads.push_back(std::move(thread));
  }
  return profile;
}

}  // namespace

std::string ModuleOf(std::string_view file) {
  for (const std::string_view folder : kPackages) {
    const size_t at = file.rfind(folder);
    if (at != std::string_view::npos) return Dotted(file.substr(at + folder.size()));
  }
  for (const std::string_view ours : kOurs) {
    const size_t at = file.find(ours);
    if (at != std::string_view::npos) return Dotted(file.substr(at + 1));
  }
  if (file.starts_with("<frozen ")) return std::string(file.substr(8, file.size() - 9));
  if (const auto rest = InStandardLibrary(file)) return Dotted(*rest);
  return "";
}

Result<Profile> ReadSpeedscope(std::string_view text) try {
  return ProfileOf(nlohmann::json::parse(text));
} catch (const nlohmann::json::exception& error) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("py-spy wrote a profile that cannot be read: {}", error.what()),
               "pip install -U py-spy"};
}

}  // namespace fullbore::stacks
