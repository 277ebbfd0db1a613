#include "measure/stacks/source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/guarded_file.h"
#include "base/text.h"

namespace fullbore::stacks {

namespace {

constexpr off_t kMaxFileBytes = 16 << 20;

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

// "a.b as c" or "a.b": what it is called, and by which name in the file.
void AddImport(std::string_view words, const std::string& package,
               std::map<std::string, std::string, std::less<>>& imports) {
  const std::vector<std::string_view> parts = Words(words);
  if (parts.empty()) return;
  const std::string full = package.empty() ? std::string(parts[0]) : package + "." + std::string(parts[0]);
  const bool renamed = parts.size() == 3 && parts[1] == "as";
  // "import a.b" binds "a", under which "a.b" is then called by its own name.
  imports[std::string(renamed           ? parts[2]
                      : package.empty() ? parts[0].substr(0, parts[0].find('.'))
                                        : parts[0])] =
      renamed || !package.empty() ? full : std::string(parts[0].substr(0, parts[0].find('.')));
}

size_t IndentOf(std::string_view line) { return std::min(line.size(), line.find_first_not_of(" \t")); }

bool IsBlankOrComment(std::string_view line) {
  line = Trim(line);
  return line.empty() || line.starts_with('#');
}

// What is between quotes is no code; nor is what follows a #.
std::string WithoutTexts(std::string_view line) {
  std::string code;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '#') break;
    if (c == '"' || c == '\'') quote = c;
    code += c == '"' || c == '\'' ? ' ' : c;
  }
  return code;
}

}  // namespace

std::string Sources::PathOf(const std::string& file) const {
  return file.starts_with('/') || file.starts_with('<') ? file : directory_ + "/" + file;
}

Sources::File& Sources::Read(const std::string& file) {
  const auto [at, is_new] = files_.try_emplace(file);
  if (!is_new || file.starts_with('<')) return at->second;
  const std::string path = root_ + PathOf(file);
  const auto fd = OpenRegularFile(path);
  struct stat status {};
  if (!fd || fstat(fd->get(), &status) != 0 || status.st_size > kMaxFileBytes) return at->second;
  if (auto text = ReadToEnd(fd->get(), path)) at->second.text = std::move(*text);
  at->second.lines = Split(at->second.text, '\n');
  ReadImports(at->second);
  return at->second;
}

void Sources::ReadImports(File& file) {
  for (std::string_view line : file.lines) {
    line = Trim(line);
    std::string package;
    if (line.starts_with("from ")) {
      const size_t import = line.find(" import ");
      if (import == std::string_view::npos) continue;
      package = Trim(line.substr(5, import - 5));
      line.remove_prefix(import + 8);
    } else if (line.starts_with("import ")) {
      line.remove_prefix(7);
    } else {
      continue;
    }
    for (const std::string_view one : Split(line, ',')) AddImport(one, package, file.imports);
  }
}

std::string_view Sources::Line(const std::string& file, int line) {
  const File& read = Read(file);
  if (line < 1 || static_cast<size_t>(line) > read.lines.size()) return "";
  return Trim(read.lines[static_cast<size_t>(line) - 1]);
}

std::vector<std::string> Sources::CallsIn(const std::string& file, int line) {
  std::vector<std::string> calls;
  const std::string code = WithoutTexts(Line(file, line));
  const File& read = Read(file);
  for (size_t open = code.find('('); open != std::string::npos; open = code.find('(', open + 1)) {
    size_t begin = open;
    while (begin > 0 && IsNameCharacter(code[begin - 1])) --begin;
    const std::string name = code.substr(begin, open - begin);
    if (name.empty() || name == ".") continue;
    const size_t dot = name.find('.');
    const auto import = read.imports.find(name.substr(0, dot));
    if (dot == std::string::npos) {
      calls.push_back(import == read.imports.end() ? "builtins." + name : import->second);
    } else if (dot > 0 && import != read.imports.end()) {
      calls.push_back(import->second + name.substr(dot));
    } else {
      calls.push_back(name.substr(name.rfind('.')));  // of an object: its method's name
    }
  }
  return calls;
}

bool Sources::ClassHas(const std::string& file, int line, std::initializer_list<std::string_view> methods) {
  const std::vector<std::string_view>& lines = Read(file).lines;
  if (line < 1 || static_cast<size_t>(line) > lines.size()) return false;
  // Outwards from the line, through blocks that are indented ever less, to the head of the class.
  size_t head = static_cast<size_t>(line) - 1, indent = IndentOf(lines[head]);
  while (!Trim(lines[head]).starts_with("class ")) {
    do {
      if (head == 0) return false;
      --head;
    } while (IsBlankOrComment(lines[head]) || IndentOf(lines[head]) >= indent);
    indent = IndentOf(lines[head]);
  }
  std::set<std::string_view> missing = methods;
  for (size_t i = head + 1; i < lines.size() && !missing.empty(); ++i) {
    if (IsBlankOrComment(lines[i])) continue;
    if (IndentOf(lines[i]) <= indent) break;
    const std::string_view text = Trim(lines[i]);
    if (text.starts_with("def ")) missing.erase(Trim(text.substr(4, text.find('(') - 4)));
  }
  return missing.empty();
}

}  // namespace fullbore::stacks
