#include "cli/help_layout.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/text.h"

namespace fullbore::cli {

namespace {

constexpr size_t kLeastText = 24;  // columns beside a name
constexpr size_t kBelowName = 4;

// "  --name VALUE    what it is for": the name with the blanks around it, and the description. Prose has no name.
struct Entry {
  std::string name, text;

  bool IsProse() const { return Trim(name).empty(); }
  bool GoesOnIn(const Entry& next) const {
    return !IsProse() && next.IsProse() && next.name.size() == name.size() && !next.text.empty();
  }
};

Entry EntryOf(std::string_view line) {
  const size_t begin = std::min(line.size(), line.find_first_not_of(' '));
  const size_t blanks = line.rfind("  ");
  const size_t text = blanks == std::string_view::npos || blanks < begin ? begin : blanks + 2;
  return {std::string(line.substr(0, text)), std::string(line.substr(text))};
}

std::string InColumns(const Entry& entry, size_t columns) {
  size_t hanging = entry.name.size();
  std::string out = entry.name;
  if (hanging + kLeastText > columns && !entry.IsProse()) {
    hanging = entry.name.find_first_not_of(' ') + kBelowName;
    out = entry.name.substr(0, entry.name.find_last_not_of(' ') + 1) + "\n" + std::string(hanging, ' ');
  }
  const size_t room = std::max(columns, hanging + kLeastText) - hanging;
  bool first = true;
  for (const std::string& line : Wrap(entry.text, static_cast<int>(room))) {
    if (!std::exchange(first, false)) out += "\n" + std::string(hanging, ' ');
    out += line;
  }
  return out;
}

}  // namespace

std::string HelpInColumns(std::string_view help, int columns) {
  std::vector<Entry> entries;
  for (const std::string_view line : Split(help, '\n')) {
    Entry entry = EntryOf(line);
    if (!entries.empty() && entries.back().GoesOnIn(entry))
      entries.back().text += " " + entry.text;
    else
      entries.push_back(std::move(entry));
  }
  std::string out;
  for (const Entry& entry : entries)
    out += (entry.text.empty() ? "" : InColumns(entry, static_cast<size_t>(columns))) + "\n";
  out.pop_back();
  return out;
}

}  // namespace fullbore::cli
