// The bar of shares and its legend, for a terminal.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "report/palette.h"
#include "report/terminal.h"

namespace fullbore::report {

// A text in two forms: plain, for measuring, and as printed (with colours).
struct Piece {
  std::string plain;
  std::string painted;
  // Of the whole piece, so that it can be painted line by line; a mixture has none.
  std::string_view sgr = {};
};

Piece Paint(std::string text, std::string_view sgr, const TerminalStyle& style);  // sgr: "1;31", a constant

// Exactly `columns` columns, divided by largest remainder: a share of 1 % of 40 columns may get none.
Piece ShareBar(const std::map<std::string, double>& shares, int columns, const TerminalStyle& style,
               std::span<const ShareLook> looks = kShareLooks);

// "█ text", with the bar's glyph of that look.
Piece LegendEntry(const ShareLook& look, const std::string& text, const TerminalStyle& style);

// "█ compute 54 %" for each share of at least one percent, in the order of the bar; the named parts of
// host_other follow it in brackets.
std::vector<Piece> ShareLegend(const std::map<std::string, double>& shares,
                               const std::map<std::string, double>& host_other_parts,
                               const TerminalStyle& style);

// The same within `columns`, with `gap` columns in between: the largest shares stay, and those without room
// are summed up as "rest 7 %". At least one stays.
std::vector<Piece> ShareLegendWithin(const std::map<std::string, double>& shares, int columns, int gap,
                                     const TerminalStyle& style);

}  // namespace fullbore::report
