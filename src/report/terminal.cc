#include "report/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "report/figures.h"
#include "report/palette.h"
#include "report/share_bar.h"
#include "report/terminal_screen.h"

namespace fullbore::report {

using diagnose::Diagnosis;
using diagnose::Finding;
using diagnose::Severity;

namespace {

constexpr size_t kMaxFindings = 5;  // in "also": one screen
constexpr size_t kMaxMessages = 5;
constexpr size_t kMaxLimits = 3;
constexpr size_t kMaxNotes = 6;     // of would-not-help and not-judged each
constexpr int kTableColumns = 120;  // from this width on, a finding takes one line

std::string_view ColorOf(Severity severity) {
  switch (severity) {
    case Severity::kCritical:
      return "31";
    case Severity::kWarning:
      return "33";
    case Severity::kInfo:
      return kGreen;
  }
  return "";
}

// Ids end in the default name of a stage, followed by a number if several runs began in the same minute.
bool IsNamedAfter(std::string_view run_id, std::string_view stage) {
  if (run_id.ends_with(stage)) return true;
  const size_t dash = run_id.rfind('-');
  if (dash == std::string_view::npos || !ParseInt(run_id.substr(dash + 1))) return false;
  return run_id.substr(0, dash).ends_with(stage);
}

// The change in code, or else the recommended fix in words.
std::string ChangeText(const Finding& finding) {
  return !finding.change.empty() || finding.fix.empty() ? finding.change : finding.fix.front();
}

// Of what a recording without its kernels looks like, nothing is shown.
bool HasNoShares(const Diagnosis& d) {
  const fitness::Condition* refusal = d.fitness.WhyNot(fitness::Conclusion::kAnything);
  return refusal != nullptr && refusal->Forbids(fitness::Conclusion::kIdleTime);
}

// The page that says what the finding is, how to confirm it and how to fix it.
std::string WhyText(const Finding& finding) { return "why: fullbore help " + finding.id; }

}  // namespace

// The first line is indented by `indent`, the others by `hanging`.
void Screen::Paragraph(std::string_view text, int indent, int hanging, std::string_view sgr) {
  bool first = true;
  for (const std::string& line : Wrap(Clean(text), style_.width - std::max(indent, hanging))) {
    const auto blanks = static_cast<size_t>(first ? indent : hanging);
    Line(std::string(blanks, ' ') + Paint(line, sgr, style_).painted);
    first = false;
  }
}

// Pieces side by side, as many per line as fit. A piece that is wider than a line continues on the next.
void Screen::Flow(const std::vector<Piece>& pieces, std::string_view separator, int indent, int hanging) {
  const std::string gap = Clean(separator);
  std::string line;
  int columns = 0;
  bool first = true;
  for (const Piece& piece : pieces) {
    const int width = Columns(piece.plain);
    if (columns > 0 && columns + Columns(gap) + width > style_.width) {
      Line(line);
      columns = 0;
    }
    if (columns == 0) {
      columns = first ? indent : hanging;
      line.assign(static_cast<size_t>(columns), ' ');
      first = false;
    } else {
      line += gap;
      columns += Columns(gap);
    }
    if (columns + width <= style_.width) {
      line += piece.painted;
      columns += width;
      continue;
    }
    const std::vector<std::string> lines = Wrap(piece.plain, style_.width - std::max(columns, hanging));
    for (const std::string& part : lines) {
      if (&part != &lines.front()) {
        Line(line);
        line.assign(static_cast<size_t>(hanging), ' ');
        columns = hanging;
      }
      line += Paint(part, piece.sgr, style_).painted;
    }
    columns += Columns(lines.back());
  }
  if (columns > 0) Line(line);
}

void Screen::Header() {
  std::vector<Piece> parts;
  const Piece name = Painted("fullbore", kBold);
  const std::string id = Clean(d_.run_id.empty() ? d_.source : d_.run_id);
  parts.push_back({name.plain + "  " + id, name.painted + "  " + id});
  // A run of one command is usually named after its stage: once is enough.
  if (!d_.stage.empty() && !IsNamedAfter(d_.run_id, d_.stage)) parts.push_back(Plain("stage " + d_.stage));
  for (const std::string& part : SubjectParts(d_)) parts.push_back(Plain(part));
  std::string extent = d_.end_ns > d_.begin_ns ? FormatDuration(d_.end_ns - d_.begin_ns) : "";
  if (d_.sampled) {
    extent += fmt::format(", {} samples", FormatCount(static_cast<double>(d_.sampled->samples)));
  } else if (d_.steps > 0) {
    extent += extent.empty() ? "" : ", ";
    const std::string step = d_.engine.empty() ? StepWord(d_) : d_.engine + " " + StepWord(d_);
    extent += d_.steps == 1 ? "one " + step
                            : fmt::format("{} {}s", FormatCount(static_cast<double>(d_.steps)), step);
    if (d_.warmup_steps > 0) {
      extent += fmt::format(" after {} of warm-up", FormatCount(static_cast<double>(d_.warmup_steps)));
    }
  }
  if (!extent.empty()) parts.push_back(Plain(extent));
  Flow(parts, "  ·  ", 0, 2);
  Line();
}

void Screen::Failure() {
  const std::string failure = FailureText(d_);
  if (failure.empty()) return;
  Paragraph(failure, 2, 2, "1;31");
  Line();
}

void Screen::Limits() {
  const std::vector<std::string> limits = LimitTexts(d_);
  for (size_t i = 0; i < std::min(limits.size(), kMaxLimits); ++i) Paragraph(limits[i], 2, 2, "33");
  if (limits.size() > kMaxLimits)
    Paragraph(fmt::format("and {} more in the full report", limits.size() - kMaxLimits), 2, 2, kDim);
  if (!limits.empty()) Line();
}

void Screen::Verdict() {
  const bool refused = IsRefused(d_);
  const Severity severity = refused               ? Severity::kWarning
                            : d_.findings.empty() ? Severity::kInfo
                                                  : d_.findings.front().severity;
  const std::string mark = style_.color && style_.unicode ? "▌ " : "  ";
  for (const std::string& line : Wrap(Clean(VerdictText(d_)), style_.width - 2)) {
    Line(Paint(mark, ColorOf(severity), style_).painted + Paint(line, kBold, style_).painted);
  }
  if (!refused && !d_.findings.empty()) {
    Change(d_.findings.front());
    Paragraph(WhyText(d_.findings.front()), 4, 4, kDim);
  }
  Line();
}

// The recommended change, its place and what it is predicted to gain.
void Screen::Change(const Finding& finding) {
  const std::string what = ChangeText(finding);
  if (what.empty()) return;
  const std::string gain = GainText(finding);
  const std::string place = PlaceText(finding);
  const std::string rate = d_.sampled ? "" : RateText(d_, finding.speedup.expected);
  const std::string predicted = gain.empty() ? ""
                                             : fmt::format("predicted {}{}{} faster{}", rate,
                                                           rate.empty() ? "" : ", ", gain, CostText(finding));
  std::vector<Piece> parts{Painted("→ " + what, kGreen)};
  if (!place.empty()) parts.push_back(Plain(place));
  if (!predicted.empty()) parts.push_back(Painted(predicted, kBold));
  Flow(parts, "   ", 2, 4);
}

void Screen::Step() {
  if (d_.steps == 0 || d_.shares.empty() || HasNoShares(d_)) return;
  const std::string whose = d_.ranks.size() > 1 ? fmt::format(" (rank {})", d_.ranks.front().rank) : "";
  const std::string what = d_.sampled
                               ? SampledText(*d_.sampled)
                               : StepWord(d_) + " " + FormatDuration(static_cast<int64_t>(d_.mean_step_ns));
  const Piece label = Plain(what + whose);
  const int room = style_.width - 2 - Columns(label.plain) - 3;
  const Piece bar = ShareBar(d_.shares, std::clamp(room, 1, kBarColumns), style_);
  const std::vector<Piece> legend = ShareLegend(d_.shares, d_.host_other_parts, style_);
  int legend_columns = 0;
  for (const Piece& piece : legend) legend_columns += 3 + Columns(piece.plain);
  std::vector<Piece> first{{label.plain + "   " + bar.plain, label.painted + "   " + bar.painted}};
  if (Columns(first[0].plain) + 2 + legend_columns <= style_.width) {
    first.insert(first.end(), legend.begin(), legend.end());
    Flow(first, "   ", 2, 2);
  } else {
    Flow(first, "", 2, 2);
    Flow(legend, "   ", 2, 2);
  }
  for (const diagnose::ServedPhase& phase : d_.served) Paragraph(ServedText(phase), 2, 2, kDim);
  if (const std::string regimes = RegimesText(d_); !regimes.empty()) Paragraph(regimes, 2, 2, kDim);
}

void Screen::Figures() {
  std::vector<Piece> pieces;
  if (d_.steps > 0 && !d_.sampled) {
    if (const std::string rate = RateText(d_); !rate.empty())
      pieces.push_back(Painted(rate + RateRangeText(d_), kBold));
    if (const std::string tokens = TokenRateText(d_); !tokens.empty()) pieces.push_back(Plain(tokens));
    if (const std::string flops = FlopsText(d_); !flops.empty()) pieces.push_back(Plain(flops));
  }
  for (const std::vector<Figure>& figures : {DeviceFigures(d_), HostFigures(d_)}) {
    for (const Figure& figure : figures) pieces.push_back(Plain(figure.label + " " + figure.value));
  }
  if (pieces.empty()) return;
  Flow(pieces, "   ", 2, 2);
}

// Columns of title, place and gain; the rest of the width is for the change.
std::array<int, 3> Screen::TableColumns(std::span<const Finding> findings) const {
  std::array<int, 3> columns{0, 0, 4};
  for (const Finding& finding : findings) {
    columns[0] = std::max(columns[0], Columns(Clean(finding.title)));
    columns[1] = std::max(columns[1], Columns(Clean(PlaceText(finding))));
    columns[2] = std::max(columns[2], Columns(GainText(finding)));
  }
  columns[0] = std::min(columns[0], style_.width / 2 - 4);
  columns[1] = std::min(columns[1], 24);
  return columns;
}

void Screen::FindingInTable(size_t number, const Finding& finding, const std::array<int, 3>& columns) {
  const auto [title_columns, place_columns, gain_columns] = columns;
  const int right =
      std::max(10, style_.width - (5 + title_columns + 2 + place_columns + 2 + gain_columns + 2));
  std::vector<Piece> titles, changes;
  for (const std::string& line : Wrap(Clean(finding.title), title_columns)) titles.push_back(Plain(line));
  if (const std::string change = Clean(ChangeText(finding)); !change.empty()) {
    for (const std::string& line : Wrap(change, right)) changes.push_back(Paint(line, kGreen, style_));
  }
  // A command is not broken: it goes under the title, unless all titles are shorter.
  const std::string command = Elide(Clean(WhyText(finding)), std::max(title_columns, right), style_.unicode);
  const Piece why = Paint(command, kDim, style_);
  (Columns(why.plain) <= title_columns ? titles : changes).push_back(why);
  for (size_t i = 0; i < std::max(titles.size(), changes.size()); ++i) {
    const std::string mark = i == 0 ? fmt::format("  {:<3}", number) : std::string(5, ' ');
    const Piece title = i < titles.size() ? titles[i] : Piece{};
    const std::string place =
        i == 0 ? ElideFront(Clean(PlaceText(finding)), place_columns, style_.unicode) : "";
    const std::string rest =
        "  " + Pad(place, place_columns) + "  " + Pad(i == 0 ? GainText(finding) : "", gain_columns);
    std::string line = Paint(mark, ColorOf(finding.severity), style_).painted + title.painted;
    const std::string blanks(static_cast<size_t>(title_columns - Columns(title.plain)), ' ');
    if (i < changes.size()) {
      line += blanks + rest + "  " + changes[i].painted;
    } else if (rest.find_first_not_of(' ') != std::string::npos) {
      line += blanks + rest.substr(0, rest.find_last_not_of(' ') + 1);
    }
    Line(line);
  }
}

void Screen::FindingInTwoLines(size_t number, const Finding& finding) {
  const std::vector<std::string> title = Wrap(Clean(finding.title), style_.width - 5);
  for (size_t i = 0; i < title.size(); ++i) {
    const std::string mark = i == 0 ? fmt::format("  {:<3}", number) : std::string(5, ' ');
    Line(Paint(mark, ColorOf(finding.severity), style_).painted + title[i]);
  }
  std::vector<Piece> parts;
  if (const std::string gain = GainText(finding); !gain.empty()) parts.push_back(Painted(gain, kBold));
  if (const std::string place = PlaceText(finding); !place.empty()) parts.push_back(Plain(place));
  if (const std::string change = ChangeText(finding); !change.empty())
    parts.push_back(Painted(change, kGreen));
  parts.push_back(Painted(WhyText(finding), kDim));
  Flow(parts, "   ", 5, 5);
}

void Screen::Also() {
  const size_t said = IsRefused(d_) ? 0 : 1;
  if (d_.findings.size() <= said) return;
  const std::span<const Finding> others = std::span(d_.findings).subspan(said);
  const std::span<const Finding> shown = others.first(std::min(others.size(), kMaxFindings));
  const std::array<int, 3> columns = TableColumns(shown);
  Line();
  if (style_.width >= kTableColumns) {
    const std::string head = Pad("  also", 5 + columns[0] + 2 + columns[1] + 2) + "gain";
    Line(Paint(head, kDim, style_).painted);
  } else {
    Line(Paint("  also", kDim, style_).painted);
  }
  for (size_t i = 0; i < shown.size(); ++i) {
    if (style_.width >= kTableColumns) {
      FindingInTable(i + 1 + said, shown[i], columns);
    } else {
      FindingInTwoLines(i + 1 + said, shown[i]);
    }
  }
  if (others.size() > shown.size()) {
    Paragraph(fmt::format("and {} more in the full report", others.size() - shown.size()), 5, 5, kDim);
  }
}

void Screen::Note(std::string_view label, const std::vector<std::string>& notes) {
  if (notes.empty()) return;
  std::string text;
  for (size_t i = 0; i < std::min(notes.size(), kMaxNotes); ++i) text += (i == 0 ? "" : "; ") + notes[i];
  if (notes.size() > kMaxNotes) text += fmt::format("; and {} more", notes.size() - kMaxNotes);
  Paragraph(fmt::format("{}: {}", label, text), 2, 4, kDim);
}

void Screen::Notes() {
  const auto with_reason = [](const std::string& what, const std::string& why) {
    return why.empty() ? what : fmt::format("{} ({})", what, why);
  };
  std::vector<std::string> would_not_help, not_judged;
  for (const auto& note : d_.would_not_help) would_not_help.push_back(with_reason(note.what, note.why));
  for (const auto& note : d_.not_judged) not_judged.push_back(with_reason(note.id, note.why));
  const std::vector<std::string> caveats = CaveatTexts(d_);
  if (would_not_help.empty() && not_judged.empty() && caveats.empty() && d_.notes.empty()) return;
  if (!out_.ends_with("\n\n")) Line();
  Note("would not help", would_not_help);
  Note("not judged", not_judged);
  Note("judged in part", caveats);
  Note("how it was read", d_.notes);
}

void Screen::Messages() {
  if (d_.messages.empty()) return;
  Line();
  for (size_t i = 0; i < std::min(d_.messages.size(), kMaxMessages); ++i) {
    // In full: the reason and the next step come at the end of a message.
    std::string mark = Paint("  ! ", "33", style_).painted;
    for (const std::string& line : Wrap(Clean(d_.messages[i]), style_.width - 4)) {
      Line(std::exchange(mark, "    ") + line);
    }
  }
  if (d_.messages.size() > kMaxMessages) {
    Paragraph(fmt::format("and {} more messages in the full report", d_.messages.size() - kMaxMessages), 4, 4,
              kDim);
  }
}

void Screen::Further(const FurtherReading& further) {
  if (further.html.empty() && further.again.empty()) return;
  const std::string html = Clean(further.html);
  const std::string again = Clean(further.again);
  const Piece report = Paint("report", kDim, style_);
  const Piece once_more = Paint("again", kDim, style_);
  Line();
  if (html.empty() || again.empty() || 2 + 8 + Columns(html) + 5 + 7 + Columns(again) > style_.width) {
    if (!html.empty()) Line("  " + report.painted + "  " + html);
    if (!again.empty()) Line("  " + once_more.painted + "   " + again);
  } else {
    Line("  " + report.painted + "  " + html + "     " + once_more.painted + "  " + again);
  }
}

namespace {

void ShowStage(const Diagnosis& diagnosis, Screen& screen) {
  screen.Header();
  screen.Failure();
  // A refusal is said before all else that limits.
  if (IsRefused(diagnosis)) {
    screen.Verdict();
    screen.Limits();
  } else {
    screen.Limits();
    screen.Verdict();
  }
  screen.Step();
  screen.DeviceWindow();
  screen.Figures();
  screen.Logged();
  screen.Memory();
  screen.Ranks();
  screen.Also();
  screen.Replay();
  screen.Notes();
  screen.Messages();
}

}  // namespace

TerminalStyle StyleFor(int fd) {
  TerminalStyle style;
  style.unicode = LocaleIsUtf8();
  if (!isatty(fd)) return style;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  style.color = !(no_color && *no_color) && term && std::string_view(term) != "dumb";
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    style.width = std::clamp<int>(size.ws_col, 40, 200);
  return style;
}

std::string ToTerminal(const Diagnosis& diagnosis, const TerminalStyle& style,
                       const FurtherReading& further) {
  return ToTerminal(std::span(&diagnosis, 1), style, further);
}

std::string ToTerminal(std::span<const Diagnosis> stages, const TerminalStyle& style,
                       const FurtherReading& further) {
  std::string text;
  for (const Diagnosis& diagnosis : stages) {
    Screen screen(diagnosis, style);
    ShowStage(diagnosis, screen);
    if (&diagnosis == &stages.back()) screen.Further(further);
    if (!text.empty()) text += "\n";
    text += screen.Take();
  }
  return text;
}

}  // namespace fullbore::report
