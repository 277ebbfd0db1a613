#include "measure/collect/status_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/printable.h"

namespace fullbore::collect {

namespace {

constexpr char kSaveCursor[] = "\x1b\x37";
constexpr char kRestoreCursor[] = "\x1b\x38";
constexpr char kIndex[] = "\x1b\x44";  // down a line in the same column; at the bottom the screen scrolls
constexpr char kCursorUp[] = "\x1b[A";

constexpr int kMinRows = 10;  // below, a row is worth more to the command than to us
constexpr int kMinColumns = 40;

bool IsCapable() {
  const char* off = std::getenv("FULLBORE_STATUS");
  if (off && std::string_view(off) == "off") return false;
  const char* terminal = std::getenv("TERM");
  return terminal && *terminal && std::string_view(terminal) != "dumb";
}

}  // namespace

bool IsForeground(int fd) { return tcgetpgrp(fd) == getpgrp(); }

StatusLine::StatusLine(int fd) : fd_(fd), available_(isatty(fd) && IsCapable()) {}

void StatusLine::Show(const std::string& text) {
  if (!available_) return;
  if (!IsForeground(fd_)) return;  // another job owns the screen: writing would garble it
  winsize size{};
  if (ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_row < kMinRows || size.ws_col < kMinColumns)
    return Hide();
  std::string bytes;
  if (rows_ != size.ws_row) {
    bytes = TakeRow(size.ws_row);
    rows_ = size.ws_row;
  }
  const bool color = !std::getenv("NO_COLOR");
  const bool unicode = LocaleIsUtf8();
  bytes += fmt::format("{}\x1b[{};1H\x1b[2K{}{}{}{}", kSaveCursor, rows_, color ? "\x1b[2m" : "",
                       Elide(Printable(text, unicode), size.ws_col - 1, unicode), color ? "\x1b[0m" : "",
                       kRestoreCursor);
  Write(bytes);
}

// The cursor may be anywhere, even in the middle of a line on the last row: in that case everything first
// moves up a line, and the column stays.
std::string StatusLine::TakeRow(int rows) const {
  std::string bytes = kSaveCursor;
  if (rows_ != 0) bytes += fmt::format("\x1b[r\x1b[{};1H\x1b[2K", std::min(rows_, rows));  // the old one
  bytes += fmt::format("{}{}{}", kRestoreCursor, kIndex, kCursorUp);
  return bytes + fmt::format("{}\x1b[1;{}r{}", kSaveCursor, rows - 1, kRestoreCursor);
}

void StatusLine::Hide() {
  if (rows_ == 0) return;
  Write(fmt::format("{}\x1b[{};1H\x1b[2K\x1b[r{}", kSaveCursor, rows_, kRestoreCursor));
  rows_ = 0;
}

// One write per change, so that the terminal receives it as a whole. If the write
// fails, one status update is lost.
void StatusLine::Write(const std::string& bytes) { (void)!write(fd_, bytes.data(), bytes.size()); }

}  // namespace fullbore::collect
