#include "report/compared_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/markup.h"
#include "base/printable.h"

namespace fullbore::report {

namespace {

constexpr int kGap = 2;  // columns between cells

// ---- the terminal ----

class TerminalTable {
 public:
  TerminalTable(const ComparedTable& table, bool unicode) : table_(table), unicode_(unicode) {
    widths_.push_back(0);
    for (const std::string& run : table.runs) widths_.push_back(Columns(Shown(run)));
    for (const ComparedSection& section : table.sections) {
      for (const ComparedRow& row : section.rows) Widen(row);
    }
  }

  bool FitsIn(int columns) const {
    int all = kGap;
    for (const int width : widths_) all += width + kGap;
    return all - kGap <= columns;
  }

  std::string Beside() const {
    std::string text = Line("", table_.runs);
    for (const ComparedSection& section : table_.sections) {
      text += fmt::format("\n  {}\n", section.title);
      for (const ComparedRow& row : section.rows) text += Line(row.label, row.cells);
    }
    return text;
  }

  std::string Below(int columns) const {
    std::string text;
    for (const ComparedSection& section : table_.sections) {
      for (const ComparedRow& row : section.rows) {
        text += fmt::format("{}{}\n", text.empty() ? "" : "\n", Shown(row.label));
        for (size_t i = 0; i < row.cells.size(); ++i) {
          if (!row.cells[i].empty()) text += Hanging(table_.runs[i] + ": " + row.cells[i], columns);
        }
      }
    }
    return text;
  }

 private:
  std::string Shown(const std::string& text) const { return Printable(text, unicode_); }

  void Widen(const ComparedRow& row) {
    widths_[0] = std::max(widths_[0], Columns(Shown(row.label)));
    for (size_t i = 0; i < row.cells.size(); ++i)
      widths_[i + 1] = std::max(widths_[i + 1], Columns(Shown(row.cells[i])));
  }

  std::string Line(const std::string& label, const std::vector<std::string>& cells) const {
    std::string line = std::string(kGap, ' ') + Pad(Shown(label), widths_[0]);
    for (size_t i = 0; i < cells.size(); ++i)
      line += std::string(kGap, ' ') + Pad(Shown(cells[i]), widths_[i + 1]);
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }

  std::string Hanging(const std::string& cell, int columns) const {
    std::string text;
    for (const std::string& line : Wrap(Shown(cell), std::max(1, columns - 2 * kGap)))
      text += fmt::format("{:{}}{}\n", "", text.empty() ? kGap : 2 * kGap, line);
    return text;
  }

  const ComparedTable& table_;
  bool unicode_;
  std::vector<int> widths_;  // of the labels, and of each run
};

// ---- JUnit ----

int CountOf(const std::vector<ConditionAnswer>& answers, size_t run, ConditionAnswer::Outcome outcome) {
  return static_cast<int>(std::ranges::count_if(
      answers, [&](const auto& answer) { return answer.run == run && answer.outcome == outcome; }));
}

std::string WhyOf(const Compared& compared, const ConditionAnswer& answer) {
  const diagnose::Comparison& comparison = compared.against_first[answer.run - 1];
  std::string why = fmt::format("{:.3g} times as fast as {}", comparison.speedup, compared.runs[0].run_id);
  if (comparison.interval_known)
    why += fmt::format(", {:.3f} to {:.3f} at 95 %", comparison.speedup_low, comparison.speedup_high);
  return why;
}

std::string TestCase(const Compared& compared, const ConditionAnswer& answer) {
  using Outcome = ConditionAnswer::Outcome;
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\"",
                                       InXml(compared.runs[answer.run].run_id), InXml(answer.condition));
  if (answer.outcome == Outcome::kPassed) return head + "/>\n";
  const char* element = answer.outcome == Outcome::kFailed ? "failure" : "error";
  const char* says = answer.outcome == Outcome::kFailed ? "holds" : "is not known";
  return fmt::format("{}>\n      <{} message=\"{} {}\">{}</{}>\n    </testcase>\n", head, element,
                     InXml(answer.condition), says, InXml(WhyOf(compared, answer)), element);
}

}  // namespace

std::string ComparedForTerminal(const ComparedTable& table, int columns, bool unicode) {
  const TerminalTable terminal(table, unicode);
  return terminal.FitsIn(columns) ? terminal.Beside() : terminal.Below(columns);
}

std::string ComparedAsMarkdown(const ComparedTable& table) {
  const auto line = [](const std::string& label, const std::vector<std::string>& cells) {
    std::string text = "| " + InMarkdown(label) + " |";
    for (const std::string& cell : cells) text += fmt::format(" {} |", InMarkdown(cell));
    return text + "\n";
  };
  std::string text = std::string(kComparedTitle) + "\n";
  for (const ComparedSection& section : table.sections) {
    text += "\n" + line(section.title, table.runs) + "|---|";
    for (size_t i = 0; i < table.runs.size(); ++i) text += "---|";
    text += "\n";
    for (const ComparedRow& row : section.rows) text += line(row.label, row.cells);
  }
  return text;
}

std::string ComparedAsJunit(const Compared& compared) {
  using Outcome = ConditionAnswer::Outcome;
  std::string text = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}>\n", kJunitMark);
  for (size_t run = 1; run < compared.runs.size(); ++run) {
    const int failures = CountOf(compared.conditions, run, Outcome::kFailed);
    const int errors = CountOf(compared.conditions, run, Outcome::kUnknown);
    const int tests = failures + errors + CountOf(compared.conditions, run, Outcome::kPassed);
    text += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n",
                        InXml(compared.runs[run].run_id), tests, failures, errors);
    for (const ConditionAnswer& answer : compared.conditions) {
      if (answer.run == run) text += TestCase(compared, answer);
    }
    text += "  </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

}  // namespace fullbore::report
