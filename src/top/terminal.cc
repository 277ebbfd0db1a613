#include "top/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

// Last: it defines macros with short names.
#include <curses.h>

namespace fullbore::top {

namespace {

SCREEN* the_screen = nullptr;  // curses knows one at a time

}  // namespace

Result<Terminal> Terminal::Open(bool colours) {
  const char* term = std::getenv("TERM");
  const std::string kind = term != nullptr ? term : "";
  if (isatty(STDOUT_FILENO) == 0 || isatty(STDIN_FILENO) == 0) {
    return Error{ErrorCode::kUnsupported, "top fills a terminal, and standard output or input is none",
                 "fullbore top --once prints one frame, --json - one object a second"};
  }
  the_screen = newterm(nullptr, stdout, stdin);
  if (the_screen == nullptr) {
    return Error{ErrorCode::kUnsupported, fmt::format("the terminal TERM='{}' is not known here", kind),
                 "TERM=xterm-256color fullbore top, or fullbore top --once"};
  }
  set_term(the_screen);
  cbreak();
  noecho();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  curs_set(0);
  set_escdelay(25);
  const bool coloured = colours && has_colors() && start_color() == OK;
  if (coloured) use_default_colors();
  return Terminal(coloured);
}

Terminal::Terminal(Terminal&& other) noexcept
    : open_(std::exchange(other.open_, false)), colours_(other.colours_), pairs_(std::move(other.pairs_)) {}

Terminal::~Terminal() {
  if (!open_) return;
  endwin();
  delscreen(std::exchange(the_screen, nullptr));
}

int Terminal::columns() const { return COLS; }
int Terminal::rows() const { return LINES; }

int Terminal::PairOf(int colour) {
  if (!colours_ || colour < 0 || colour >= COLORS)
    return 0;  // where colours are few, glyphs and words must do
  const auto found = std::ranges::find(pairs_, colour);
  if (found == pairs_.end()) {
    if (static_cast<int>(pairs_.size()) + 1 >= COLOR_PAIRS) return 0;
    pairs_.push_back(colour);
    init_pair(static_cast<short>(pairs_.size()), static_cast<short>(colour), -1);
    return static_cast<int>(pairs_.size());
  }
  return static_cast<int>(found - pairs_.begin()) + 1;
}

void Terminal::Show(const std::vector<Line>& lines) {
  erase();
  for (size_t row = 0; row < lines.size() && static_cast<int>(row) < LINES; ++row) {
    move(static_cast<int>(row), 0);
    for (const Span& span : lines[row]) {
      attr_t attributes = A_NORMAL;
      if (span.bold) attributes |= A_BOLD;
      if (span.dim) attributes |= A_DIM;
      if (span.reverse) attributes |= A_REVERSE;
      attr_set(attributes, static_cast<short>(PairOf(span.colour)), nullptr);
      addstr(span.text.c_str());
    }
    attr_set(A_NORMAL, 0, nullptr);
  }
  refresh();
}

Key Terminal::Read() {
  switch (getch()) {
    case KEY_RESIZE:
      return Key::kResize;
    case KEY_UP:
    case 'k':
      return Key::kUp;
    case KEY_DOWN:
    case 'j':
      return Key::kDown;
    case KEY_PPAGE:
      return Key::kPageUp;
    case KEY_NPAGE:
    case ' ':
      return Key::kPageDown;
    case KEY_ENTER:
    case '\n':
    case '\r':
      return Key::kEnter;
    case 27:
    case KEY_BACKSPACE:
    case 127:
    case KEY_LEFT:
      return Key::kBack;
    case 'h':
    case '?':
    case KEY_F(1):
      return Key::kHelp;
    case 'e':
      return Key::kReport;
    case 'q':
    case KEY_F(10):
      return Key::kQuit;
    case 'P':
      return Key::kByCpu;
    case 'M':
      return Key::kByMemory;
    case 'N':
      return Key::kByPid;
    default:
      return Key::kNone;
  }
}

void Terminal::Leave() { endwin(); }

void Terminal::Return() {
  clearok(stdscr, TRUE);
  refresh();
}

std::string ToText(const std::vector<Line>& lines, bool colours) {
  std::string text;
  for (const Line& line : lines) {
    std::string row;
    for (const Span& span : line) {
      std::string sgr;
      const auto add = [&](const std::string& code) { sgr += (sgr.empty() ? "" : ";") + code; };
      if (span.bold) add("1");
      if (span.dim) add("2");
      if (span.reverse) add("7");
      if (span.colour >= 0) add(fmt::format("38;5;{}", span.colour));
      row += colours && !sgr.empty() ? "\x1b[" + sgr + "m" + span.text + "\x1b[0m" : span.text;
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

}  // namespace fullbore::top
