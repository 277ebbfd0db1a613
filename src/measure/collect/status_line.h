// The one live line of a run, on the last row of the terminal, and only there.
//
// The command writes to the same terminal. As package managers do for their progress bars, the last row is
// taken out of the scrolling region, so that the command's output scrolls above it and never mixes with it.
// Nothing is shown if stderr is not a terminal, the terminal is small, a shell has put us into the
// background, or FULLBORE_STATUS=off.
#pragma once

#include <string>

namespace fullbore::collect {

// Whether the terminal behind `fd` is ours to write to and to read from, rather than another job's.
bool IsForeground(int fd);

class StatusLine {
 public:
  explicit StatusLine(int fd);  // starts hidden
  ~StatusLine() { Hide(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool available() const { return available_; }
  void Show(const std::string& text);  // takes the row if not yet taken; follows the terminal's size
  void Hide();                         // gives the row back, as before a stop or the report

 private:
  std::string TakeRow(int rows) const;
  void Write(const std::string& bytes);

  int fd_;
  bool available_ = false;
  int rows_ = 0;  // of the region taken; 0: hidden
};

}  // namespace fullbore::collect
