// The terminal of `top`: ncurses behind five calls. One at a time; the destructor gives the terminal back as it was.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "top/layout.h"

namespace fullbore::top {

enum class Key : uint8_t {
  kNone,
  kResize,
  kUp,
  kDown,
  kPageUp,
  kPageDown,
  kEnter,
  kBack,
  kHelp,
  kReport,
  kQuit,
  kByCpu,
  kByMemory,
  kByPid
};

class Terminal {
 public:
  // Fails where standard output or input is no terminal, or $TERM is not known.
  static Result<Terminal> Open(bool colours);
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal();

  int columns() const;
  int rows() const;
  void Show(const std::vector<Line>& lines);
  Key Read();     // what has been typed; kNone at once if nothing
  void Leave();   // gives the terminal back for a while
  void Return();  // and takes it again

 private:
  explicit Terminal(bool colours) : colours_(colours) {}
  int PairOf(int colour);

  bool open_ = true;
  bool colours_;
  std::vector<int> pairs_;  // colours by the number of their pair, from 1
};

// For --once: with colours as escape sequences where `colours`.
std::string ToText(const std::vector<Line>& lines, bool colours);

}  // namespace fullbore::top
