// List files: one sample per line.
//
//   .csv, .tsv   columns; "quoted, with ""quotes"" and line ends" (RFC 4180; a .tsv may be quoted too)
//   others       "path label": the label is the last word, so that paths may contain blanks
//
// Empty lines are skipped, "\r\n" ends a line too, and a byte order mark at the beginning is ignored.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "fullbore/result.h"

namespace fullbore::loader {

enum class ListSyntax { kComma, kTab, kPathLabel };
ListSyntax ListSyntaxOf(std::string_view path);  // by its extension

// Receives one row; `line` counts from 1. An error ends the parsing and is returned.
using RowVisitor = std::function<Result<void>(uint64_t line, std::span<const std::string> cells)>;

// kInvalidArgument, naming the line: a quote that is never closed, or text after a closing one. kPathLabel
// gives two cells, or one for a line of one word.
Result<void> ParseList(std::string_view text, ListSyntax syntax, const RowVisitor& visit);

}  // namespace fullbore::loader
