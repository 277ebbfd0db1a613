// The terminal's text of one diagnosis, section by section: terminal.cc says in which order. Memory, ranks and
// replays have files of their own.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "explain/diagnose/diagnosis.h"
#include "report/share_bar.h"
#include "report/terminal.h"

namespace fullbore::report {

inline constexpr int kBarColumns = 40;

inline constexpr std::string_view kBold = "1";
inline constexpr std::string_view kDim = "2";
inline constexpr std::string_view kGreen = "32";

// Ranks, or machines, whose steps look alike.
struct StepGroup {
  double mean_step_ns = 0;  // of the first of them, as the shares
  const std::map<std::string, double>* shares = nullptr;
  std::vector<std::string> names;  // of machines; else each rank's device
  std::vector<int> numbers;        // of all ranks
};

class Screen {
 public:
  Screen(const diagnose::Diagnosis& diagnosis, const TerminalStyle& style) : d_(diagnosis), style_(style) {}

  std::string Take() { return std::move(out_); }

  void Header();
  void Failure();
  void Limits();
  void Verdict();
  void Step();
  void Figures();
  void Logged();
  void Memory();
  void Ranks();
  void Also();
  void Replay();
  void DeviceWindow();
  void Notes();
  void Messages();
  void Further(const FurtherReading& further);

 private:
  std::string Clean(std::string_view text) const { return Printable(text, style_.unicode); }
  Piece Plain(std::string_view text) const { return Paint(Clean(text), "", style_); }
  Piece Painted(std::string_view text, std::string_view sgr) const { return Paint(Clean(text), sgr, style_); }

  void Line(std::string_view painted = "") { out_.append(painted).append("\n"); }
  void Paragraph(std::string_view text, int indent, int hanging, std::string_view sgr);
  void Flow(const std::vector<Piece>& pieces, std::string_view separator, int indent, int hanging);

  void Change(const diagnose::Finding& finding);
  void FindingInTable(size_t number, const diagnose::Finding& finding, const std::array<int, 3>& columns);
  void FindingInTwoLines(size_t number, const diagnose::Finding& finding);
  std::array<int, 3> TableColumns(std::span<const diagnose::Finding> findings) const;
  void StepLine(const StepGroup& group, const std::string& name, int label_columns);
  void MemoryBar(const diagnose::MemoryBudget& budget);
  void Classes(const diagnose::Rung& rung);
  void Rungs(std::string_view label, const std::vector<diagnose::Rung>& rungs);
  void Note(std::string_view label, const std::vector<std::string>& notes);

  const diagnose::Diagnosis& d_;
  const TerminalStyle& style_;
  std::string out_;
};

}  // namespace fullbore::report
