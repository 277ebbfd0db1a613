#include "report/memory/terminal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "base/text.h"
#include "report/memory/sentences.h"
#include "report/share_bar.h"

namespace fullbore::report {

namespace {

constexpr size_t kLines = 8;
constexpr std::string_view kBold = "1", kDim = "2";

class MemoryScreen {
 public:
  MemoryScreen(const memory::DeviceAccount& account, const TerminalStyle& style)
      : account_(account), style_(style) {}

  std::string Draw(const std::string& name) {
    Paragraph(Header(name), 0, kDim);
    out_ += "\n";
    std::string_view sgr = kBold;
    for (const std::string& sentence : MemorySentences(account_)) {
      Paragraph(sentence, 2, sgr);
      sgr = "";
    }
    Lines();
    WhatIf();
    for (const std::string& limit : MemoryLimits(account_)) {
      out_ += "\n";
      Paragraph(limit, 2, kDim);
    }
    return std::move(out_);
  }

 private:
  std::string Header(const std::string& name) const {
    std::string text = fmt::format("{}: device {}", name, account_.device);
    if (account_.events > 0)
      text += fmt::format(", {} events", FormatCount(static_cast<double>(account_.events)));
    if (account_.span_us) text += " in " + FormatDuration(*account_.span_us * 1000);
    return text;
  }

  void Paragraph(const std::string& text, int indent, std::string_view sgr) {
    for (const std::string& line : Wrap(Printable(text, style_.unicode), style_.width - indent))
      out_ += fmt::format("{:{}}{}\n", "", indent, Paint(line, sgr, style_).painted);
  }

  void Row(const std::string& text) {
    out_ += "    " + Elide(Printable(text, style_.unicode), style_.width - 4, style_.unicode) + "\n";
  }

  void Lines() {
    const std::string when = TimeText(account_.peak.moment);
    out_ += fmt::format(
        "\n  {}\n",
        Paint("In use when it was fullest" + (when.empty() ? "" : ", at " + when), kBold, style_).painted);
    const auto& lines = account_.peak.lines;
    int64_t rest = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i >= kLines) {
        rest += lines[i].bytes;
        continue;
      }
      LineRow(lines[i].bytes,
              lines[i].place.empty() ? "no line of Python, as in a backward pass" : lines[i].place);
    }
    if (rest > 0) LineRow(rest, fmt::format("{} other lines", lines.size() - kLines));
    if (account_.peak.cached.bytes > 0)
      LineRow(account_.peak.cached.bytes,
              fmt::format("free, in {} pieces, the largest of {}", account_.peak.cached.pieces,
                          FormatBytes(static_cast<double>(account_.peak.cached.largest))));
  }

  // Of a record that contradicts itself, more is in use than reserved.
  int64_t Whole() const { return std::max(account_.peak.moment.reserved, account_.peak.moment.allocated); }

  void LineRow(int64_t bytes, const std::string& what) {
    const double share = static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(Whole(), 1));
    Row(fmt::format("{:>8}  {:>6}  {}", FormatBytes(static_cast<double>(bytes)), FormatPercent(share), what));
  }

  void WhatIf() {
    if (account_.what_if.empty()) return;
    out_ += fmt::format("\n  {}\n", Paint("What if", kBold, style_).painted);
    for (const memory::WhatIf& each : account_.what_if)
      Row(fmt::format("{:<22}  {}", each.name, WhatIfText(each, account_)));
  }

  const memory::DeviceAccount& account_;
  const TerminalStyle& style_;
  std::string out_;
};

}  // namespace

std::string MemoryToTerminal(std::span<const memory::DeviceAccount> accounts, const std::string& name,
                             const TerminalStyle& style) {
  std::string text;
  for (const memory::DeviceAccount& account : accounts) {
    if (!text.empty()) text += "\n";
    text += MemoryScreen(account, style).Draw(name);
  }
  return text.empty() ? name + ": no device holds memory in it\n" : text;
}

}  // namespace fullbore::report
