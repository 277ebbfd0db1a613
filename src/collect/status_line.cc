#include "collect/status_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace fullbore::collect {

namespace {

constexpr int kFewestRows = 10;  // below, a row is worth more to the command than to us
constexpr int kFewestColumns = 40;

// Cut to `columns` characters: never within a UTF-8 sequence, for a wrapped line would scroll the region.
std::string CutToColumns(const std::string& text, int columns) {
  size_t at = 0;
  for (int seen = 0; at < text.size(); ++at) {
    const bool starts_character = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (starts_character && seen++ == columns) break;
  }
  return text.substr(0, at);
}

bool IsCapable() {
  const char* off = std::getenv("FULLBORE_STATUS");
  if (off && std::string_view(off) == "off") return false;
  const char* terminal = std::getenv("TERM");
  return terminal && *terminal && std::string_view(terminal) != "dumb";
}

}  // namespace

StatusLine::StatusLine(int fd) : fd_(fd), available_(isatty(fd) && IsCapable()) {}

void StatusLine::Show(const std::string& text) {
  if (!available_) return;
  winsize size{};
  if (ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_row < kFewestRows || size.ws_col < kFewestColumns)
    return Hide();
  std::string bytes;
  if (rows_ != size.ws_row) {
    // One line up first, so that a cursor on the last row does not end below the region.
    bytes += rows_ == 0 ? "\n\x1b"
                          "7"
                        : "\x1b"
                          "7";
    bytes += fmt::format(
        "\x1b[1;{}r\x1b"
        "8\x1b[1A",
        size.ws_row - 1);
    if (rows_ != 0) bytes += "\x1b[1B";
    rows_ = size.ws_row;
  }
  const bool color = !std::getenv("NO_COLOR");
  bytes += fmt::format(
      "\x1b"
      "7\x1b[{};1H\x1b[2K{}{}{}\x1b"
      "8",
      rows_, color ? "\x1b[2m" : "", CutToColumns(text, size.ws_col - 1), color ? "\x1b[0m" : "");
  Write(bytes);
}

void StatusLine::Hide() {
  if (rows_ == 0) return;
  Write(
      fmt::format("\x1b"
                  "7\x1b[{};1H\x1b[2K\x1b[r\x1b"
                  "8",
                  rows_));
  rows_ = 0;
}

// One write a change, so that the terminal takes it as a whole. A terminal that does not take it loses a
// status.
void StatusLine::Write(const std::string& bytes) { (void)!write(fd_, bytes.data(), bytes.size()); }

}  // namespace fullbore::collect
