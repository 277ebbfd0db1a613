#include "loader/core/source/list_file.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "loader/core/source/paths.h"

namespace fullbore::loader {

namespace {

class SeparatedValues {
 public:
  SeparatedValues(std::string_view text, char separator) : text_(text), separator_(separator) {}

  Result<void> Visit(const RowVisitor& visit) {
    while (at_ < text_.size()) {
      const uint64_t line = line_;
      if (auto row = ReadRow(); !row) return row;
      if (cells_ == 1 && row_[0].empty()) continue;
      if (auto visited = visit(line, std::span(row_).first(cells_)); !visited) return visited;
    }
    return {};
  }

 private:
  bool AtLineEnd() const {
    return at_ >= text_.size() || text_[at_] == '\n' ||
           (text_[at_] == '\r' && text_.substr(at_ + 1, 1) == "\n");
  }

  Result<void> ReadRow() {
    cells_ = 0;
    while (true) {
      if (row_.size() == cells_) row_.emplace_back();
      std::string& cell = row_[cells_++];
      cell.clear();
      if (text_.substr(at_, 1) == "\"") {
        if (auto quoted = ReadQuoted(cell); !quoted) return quoted;
      } else {
        while (!AtLineEnd() && text_[at_] != separator_) cell += text_[at_++];
      }
      if (AtLineEnd()) break;
      ++at_;  // the separator
    }
    at_ += text_.substr(at_, 1) == "\r" ? 2 : 1;
    ++line_;
    return {};
  }

  Result<void> ReadQuoted(std::string& cell) {
    const uint64_t begin = line_;
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"' && text_.substr(at_, 1) == "\"") {
        ++at_;
        cell += '"';
      } else if (c == '"') {
        if (AtLineEnd() || text_[at_] == separator_) return {};
        return Error{ErrorCode::kInvalidArgument, fmt::format("line {}: text after a closing quote", line_),
                     "write a quote within quotes twice"};
      } else {
        line_ += c == '\n';
        cell += c;
      }
    }
    return Error{ErrorCode::kInvalidArgument, fmt::format("line {}: a quote is never closed", begin), ""};
  }

  const std::string_view text_;
  const char separator_;
  size_t at_ = 0;
  uint64_t line_ = 1;
  std::vector<std::string> row_;  // kept from row to row to reuse their memory; the first cells_ are valid
  size_t cells_ = 0;
};

Result<void> VisitPathLabels(std::string_view text, const RowVisitor& visit) {
  std::string cells[2];
  uint64_t number = 0;
  for (const std::string_view whole : Split(text, '\n')) {
    ++number;
    const std::string_view line = Trim(whole);
    if (line.empty()) continue;
    const size_t blank = line.find_last_of(" \t");
    cells[0] = Trim(line.substr(0, blank));
    cells[1] = blank == std::string_view::npos ? std::string_view() : line.substr(blank + 1);
    const size_t count = blank == std::string_view::npos ? 1 : 2;
    if (auto visited = visit(number, std::span<const std::string>(cells, count)); !visited) return visited;
  }
  return {};
}

}  // namespace

ListSyntax ListSyntaxOf(std::string_view path) {
  const std::string extension = ExtensionOf(path);
  if (extension == ".csv") return ListSyntax::kComma;
  return extension == ".tsv" ? ListSyntax::kTab : ListSyntax::kPathLabel;
}

Result<void> ParseList(std::string_view text, ListSyntax syntax, const RowVisitor& visit) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (syntax == ListSyntax::kPathLabel) return VisitPathLabels(text, visit);
  return SeparatedValues(text, syntax == ListSyntax::kComma ? ',' : '\t').Visit(visit);
}

}  // namespace fullbore::loader
