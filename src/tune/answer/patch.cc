#include "tune/answer/patch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tune/answer/script_arguments.h"
#include "tune/knob/knob.h"

namespace fullbore::tune {

namespace {

constexpr size_t kContext = 3;

struct Lines {
  explicit Lines(std::string_view text) : each(Split(text, '\n')) {
    ends_whole = each.back().empty();
    if (ends_whole) each.pop_back();
  }
  std::vector<std::string_view> each;
  bool ends_whole = false;
};

// As git writes a name that would be taken apart: quoted, or with a tab behind it.
std::string NameInDiff(const std::string& name) {
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != 0x7f && c != '"' && c != '\\';
  });
  if (is_plain) return name.find(' ') == std::string::npos ? name : name + "\t";
  std::string quoted = "\"";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      quoted += std::string("\\") + c;
    else
      quoted += byte < ' ' || byte == 0x7f ? fmt::format("\\{:03o}", byte) : std::string(1, c);
  }
  return quoted + "\"";
}

void AddHunk(const Lines& before, const Lines& after, size_t from, size_t to, std::string& diff) {
  diff += fmt::format("@@ -{0},{1} +{0},{1} @@\n", from + 1, to - from);
  const auto put = [&](char mark, const Lines& lines, size_t i) {
    diff += fmt::format("{}{}\n", mark, lines.each[i]);
    if (i + 1 == lines.each.size() && !lines.ends_whole) diff += "\\ No newline at end of file\n";
  };
  const auto differs = [&](size_t i) { return before.each[i] != after.each[i]; };
  for (size_t i = from; i < to;) {
    if (!differs(i)) {
      put(' ', before, i++);
      continue;
    }
    size_t end = i;
    while (end < to && differs(end)) ++end;
    for (size_t k = i; k < end; ++k) put('-', before, k);
    for (; i < end; ++i) put('+', after, i);
  }
}

// Of two texts with as many lines.
std::string DiffOf(std::string_view text, std::string_view changed, const std::string& path) {
  const Lines before(text), after(changed);
  std::string diff = fmt::format("--- {}\n+++ {}\n", NameInDiff("a/" + path), NameInDiff("b/" + path));
  std::vector<size_t> places;
  for (size_t i = 0; i < before.each.size(); ++i) {
    if (before.each[i] != after.each[i]) places.push_back(i);
  }
  for (size_t first = 0; first < places.size();) {
    size_t last = first;
    while (last + 1 < places.size() && places[last + 1] - places[last] <= 2 * kContext) ++last;
    AddHunk(before, after, places[first] - std::min(kContext, places[first]),
            std::min(before.each.size(), places[last] + 1 + kContext), diff);
    first = last + 1;
  }
  return diff;
}

}  // namespace

std::string PatchOf(std::string_view text, const std::string& path, int line, const Settings& settings,
                    const std::vector<std::string>& command, std::vector<std::string>* by_hand) {
  Settings of_loader;
  for (const auto& [name, value] : settings) {
    const Knob* knob = KnobNamed(name);
    if (knob != nullptr && IsOfLoader(*knob, value)) of_loader[name] = value;
  }
  if (of_loader.empty() || text.empty()) return "";
  const auto leave = [&](const std::string& name, int at, const std::string& why) {
    if (by_hand == nullptr) return;
    by_hand->push_back(fmt::format("{}={}: {}:{}: {}", name, ToText(of_loader[name]), path, at, why));
  };
  const auto found = FindArguments(text, line, of_loader, command);
  if (!found) {
    for (const auto& [name, value] : of_loader) leave(name, line, found.error().text);
    return "";
  }
  for (const ArgumentChanges::ByHand& each : found->by_hand) leave(each.setting, each.line, each.why);
  std::string changed;
  size_t at = 0;
  for (const ArgumentChanges::Edit& edit : found->edits) {
    changed += std::string(text.substr(at, edit.begin - at)) + edit.text;
    at = edit.end;
  }
  return at == 0 ? "" : DiffOf(text, changed + std::string(text.substr(at)), path);
}

}  // namespace fullbore::tune
