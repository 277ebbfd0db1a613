// The screen as lines: state in, lines out. Nothing here knows of a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "top/state.h"

namespace fullbore::top {

// A stretch of text that looks alike. `colour` is one of the terminal's 256, -1 its own; shares and states never differ
// by colour alone.
struct Span {
  std::string text;
  int colour = -1;
  bool bold = false, dim = false, reverse = false;
};
using Line = std::vector<Span>;

enum class Sort : uint8_t { kCpu, kMemory, kPid };
enum class Page : uint8_t { kOverview, kRun, kHelp };

struct View {
  int columns = 80, rows = 24;
  bool unicode = true;
  Page page = Page::kOverview;
  std::string selected{};  // name of a run; empty for the first
  Sort sort = Sort::kCpu;
  size_t scroll = 0;  // lines of the page that are above the screen
};

// At most `rows` lines of at most `columns` columns; the last says the keys.
std::vector<Line> Layout(const State& state, const View& view);

// The index of the selected run; that of the first where it has ended meanwhile.
size_t SelectedRun(const State& state, const View& view);

}  // namespace fullbore::top
