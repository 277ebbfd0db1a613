#include "top/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/printable.h"
#include "base/text.h"
#include "report/palette.h"

namespace fullbore::top {

namespace {

constexpr int kGood = 34, kWarn = 178, kBad = 160;  // green, yellow and red that hold on light and on dark
constexpr double kHigh = 0.7, kFull = 0.9;          // of a meter: where it becomes yellow, and red

class Painter {
 public:
  explicit Painter(const View& view) : view_(view) {}

  std::string Clean(const std::string& text) const { return Printable(text, view_.unicode); }
  std::string Fit(const std::string& text, int columns) const {
    return columns <= 0 ? "" : Pad(Elide(Clean(text), columns, view_.unicode), columns);
  }

  // "CPU [||||||      62 %]"
  void Meter(Line& line, const std::string& label, double ratio, const std::string& value,
             int columns) const {
    const int room = std::max(3, columns - Columns(label) - 3);
    const std::string text = Elide(value, room, view_.unicode);
    const int filled = static_cast<int>(std::lround(std::clamp(ratio, 0.0, 1.0) * room));
    const int before_text = room - Columns(text);
    std::string bar(static_cast<size_t>(std::min(filled, before_text)), '|');
    bar.resize(static_cast<size_t>(before_text), ' ');
    line.push_back({label + " ", -1, true});
    line.push_back({"["});
    line.push_back({bar, ratio >= kFull ? kBad : ratio >= kHigh ? kWarn : kGood});
    line.push_back({text, -1, false, true});
    line.push_back({"]"});
  }

  // Exactly `columns` columns, a glyph of its own for each share.
  void ShareBar(Line& line, const std::map<std::string, double>& shares, int columns) const {
    double before = 0;
    int drawn = 0;
    for (const report::ShareLook& look : report::kShareLooks) {
      const auto share = shares.find(std::string(look.name));
      if (share == shares.end()) continue;
      before += share->second;
      const int until = std::min(columns, static_cast<int>(std::lround(before * columns)));
      std::string cells;
      for (; drawn < until; ++drawn)
        cells += view_.unicode ? std::string(look.glyph) : std::string(1, look.ascii);
      if (!cells.empty()) line.push_back({cells, look.ansi});
    }
    line.push_back({std::string(static_cast<size_t>(std::max(0, columns - drawn)), ' ')});
  }

  // "forward 41 %  data 30 %", the largest first, as many as fit.
  std::string Legend(const std::map<std::string, double>& shares, int columns) const {
    std::vector<std::pair<double, std::string>> all;
    for (const auto& [name, ratio] : shares) {
      if (ratio >= 0.01) all.emplace_back(ratio, name);
    }
    std::ranges::stable_sort(all, std::greater<>(), [](const auto& one) { return one.first; });
    std::string text;
    for (const auto& [ratio, name] : all) {
      const std::string one = fmt::format("{} {}", report::LookOf(name).label, FormatPercent(ratio));
      if (Columns(text) + 2 + Columns(one) > columns) break;
      text += (text.empty() ? "" : "  ") + one;
    }
    return text;
  }

  // A block as high as the ratio.
  std::string Cell(double ratio) const {
    static const char* const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const auto level = static_cast<size_t>(std::clamp(ratio * 7.999, 0.0, 7.0));
    return view_.unicode ? std::string(blocks[level]) : std::string(1, "_.-:=+*#"[level]);
  }

  // The last values, as many as there are columns, against the largest of them.
  std::string Sparkline(const std::vector<double>& values, int columns) const {
    const size_t shown = std::min(values.size(), static_cast<size_t>(std::max(0, columns)));
    if (shown == 0) return "";
    const auto begin = values.end() - static_cast<std::ptrdiff_t>(shown);
    const double most = *std::max_element(begin, values.end());
    std::string line;
    for (auto value = begin; value != values.end(); ++value) line += Cell(most > 0 ? *value / most : 0);
    return line;
  }

 private:
  const View& view_;
};

std::string OfTotal(std::optional<double> used, std::optional<double> total) {
  if (!used) return "";
  return total ? fmt::format("{} of {}", FormatBytes(*used), FormatBytes(*total)) : FormatBytes(*used);
}

double Ratio(std::optional<double> used, std::optional<double> total) {
  return used && total && *total > 0 ? *used / *total : 0;
}

class Screen {
 public:
  Screen(const State& state, const View& view) : s_(state), view_(view), paint_(view) {}

  std::vector<Line> Draw() {
    if (view_.page == Page::kHelp)
      Help();
    else if (view_.page == Page::kRun && !s_.runs.empty())
      RunPage(s_.runs[SelectedRun(s_, view_)]);
    else
      Overview();
    return Cut();
  }

 private:
  void Text(const std::string& text, int colour = -1, bool bold = false, bool dim = false) {
    lines_.push_back({{Elide(paint_.Clean(text), view_.columns, view_.unicode), colour, bold, dim}});
  }
  void Heading(const std::string& text) {
    lines_.push_back({{paint_.Fit(text, view_.columns), -1, false, false, true}});
  }
  void Blank() { lines_.emplace_back(); }

  void Overview() {
    Runs();
    Machine();
    Processes();
  }

  void Runs() {
    if (s_.runs.empty()) {
      Heading("RUNS");
      Text("none is being recorded here: fullbore run -- python train.py", -1, false, true);
      return;
    }
    const int name = std::clamp(view_.columns - 52, 14, 40);
    Heading(paint_.Fit("RUNS", name) +
            fmt::format(" {:>5} {:>9} {:>9} {:>11} {}", "ranks", "steps", "step", "samples/s", "step time"));
    const size_t selected = SelectedRun(s_, view_);
    for (size_t i = 0; i < s_.runs.size(); ++i) RunRow(s_.runs[i], i == selected, name);
  }

  void RunRow(const Run& run, bool selected, int name) {
    const std::string step = run.step_ns > 0 ? FormatDuration(std::llround(run.step_ns)) : "-";
    const std::string samples = run.samples_per_s ? FormatCount(std::round(*run.samples_per_s)) : "-";
    Line row = {{paint_.Fit(run.name, name), -1, true, false, selected},
                {fmt::format(" {:>5} {:>9} {:>9} {:>11} ", run.ranks,
                             FormatCount(static_cast<double>(run.steps)), step, samples)}};
    row.push_back({paint_.Sparkline(run.step_times_ns, std::max(0, view_.columns - name - 39)), 74});
    lines_.push_back(std::move(row));
    Line bar = {{"  "}};
    const int columns = std::clamp(view_.columns / 2 - 4, 10, 60);
    if (!run.shares.empty()) {
      paint_.ShareBar(bar, run.shares, columns);
      bar.push_back({" " + paint_.Legend(run.shares, view_.columns - columns - 3)});
      lines_.push_back(std::move(bar));
    }
    const std::string verdict = run.verdict.empty() ? "no verdict yet" : run.verdict;
    lines_.push_back({{"  " + Elide(paint_.Clean(verdict), view_.columns - 2, view_.unicode),
                       run.verdict.empty() ? -1
                       : run.critical      ? kBad
                                           : -1,
                       run.critical, run.verdict.empty()}});
    if (!run.work.empty()) Text("  " + run.work, -1, false, true);
    std::string roles;
    for (const RoleUse& role : run.roles)
      roles += fmt::format("{}{} {} {} cores {}", roles.empty() ? "" : "   ", FormatCount(role.count),
                           role.role, FormatCount(role.cores), FormatBytes(role.memory));
    if (!roles.empty()) Text("  " + roles, -1, false, true);
  }

  void Machine() {
    const auto& m = s_.machine;
    Heading(fmt::format("MACHINE {}  {}", m.hostname, m.cpu_model));
    for (const Device& device : m.devices) DeviceRows(device);
    const int half = (view_.columns - 1) / 2;
    Line first;
    if (m.cpu) {
      const std::string of =
          m.cores ? fmt::format("{} of {} cores", FormatCount(*m.cpu * *m.cores), FormatCount(*m.cores))
                  : FormatPercent(*m.cpu);
      paint_.Meter(first, "CPU", *m.cpu, of, half);
      first.push_back({" "});
    }
    if (m.memory_used)
      paint_.Meter(first, "RAM", Ratio(m.memory_used, m.memory_total), OfTotal(m.memory_used, m.memory_total),
                   half);
    if (!first.empty()) lines_.push_back(std::move(first));
    CoreRows();
    std::string rest;
    const auto add = [&](const std::string& text) { rest += (rest.empty() ? "" : "   ") + text; };
    if (m.load1) add(fmt::format("load {:.2f}", *m.load1));
    if (m.iowait) add("iowait " + FormatPercent(*m.iowait));
    if (m.psi_cpu) add("stalled: CPU " + FormatPercent(*m.psi_cpu));
    if (m.psi_io) add("I/O " + FormatPercent(*m.psi_io));
    if (m.psi_memory) add("memory " + FormatPercent(*m.psi_memory));
    if (m.swap_used && *m.swap_used > 0) add("swap " + FormatBytes(*m.swap_used));
    if (m.shm_used && m.shm_total) add("/dev/shm " + OfTotal(m.shm_used, m.shm_total));
    if (!rest.empty()) Text(rest);
    for (const Flow& disk : m.disks) {
      if (disk.in + disk.out > 0 || m.disks.size() == 1)
        Text(fmt::format("disk {:<10} read {:>10}/s   write {:>10}/s{}", disk.name, FormatBytes(disk.in),
                         FormatBytes(disk.out), disk.busy ? "   busy " + FormatPercent(*disk.busy) : ""));
    }
    for (const Flow& net : m.networks) {
      if (net.in + net.out > 0 || m.networks.size() == 1)
        Text(fmt::format("net  {:<10} in   {:>10}/s   out   {:>10}/s", net.name, FormatBytes(net.in),
                         FormatBytes(net.out)));
    }
  }

  void DeviceRows(const Device& d) {
    const int half = (view_.columns - 1) / 2;
    Line row;
    paint_.Meter(row, "GPU " + d.number, d.utilization.value_or(0),
                 d.utilization ? FormatPercent(*d.utilization) : "-", half);
    row.push_back({" "});
    if (d.memory_used)
      paint_.Meter(row, "MEM", Ratio(d.memory_used, d.memory_total), OfTotal(d.memory_used, d.memory_total),
                   half);
    lines_.push_back(std::move(row));
    std::string rest = "  " + d.name;
    const auto add = [&](const std::string& text) { rest += "   " + text; };
    if (d.sm_active) add("SM " + FormatPercent(*d.sm_active));
    if (d.tensor_active) add("tensor " + FormatPercent(*d.tensor_active));
    if (d.power_w)
      add(d.power_limit_w ? fmt::format("{:.0f} of {:.0f} W", *d.power_w, *d.power_limit_w)
                          : fmt::format("{:.0f} W", *d.power_w));
    if (d.clock_hz) add(FormatFrequency(*d.clock_hz));
    if (d.temperature_c) add(fmt::format("{:.0f} C", *d.temperature_c));
    if (d.throttle_power.value_or(0) > 0) add("slowed by power " + FormatPercent(*d.throttle_power));
    if (d.throttle_thermal.value_or(0) > 0) add("slowed by heat " + FormatPercent(*d.throttle_thermal));
    Text(rest, d.throttle_thermal.value_or(0) > 0 ? kWarn : -1);
  }

  // A digit or a block a core, as many as fit.
  void CoreRows() {
    const auto& cores = s_.machine.core_utilization;
    if (cores.empty()) return;
    const size_t per_row = static_cast<size_t>(std::max(8, view_.columns - 8));
    for (size_t begin = 0; begin < cores.size(); begin += per_row) {
      Line row = {{begin == 0 ? "cores   " : "        ", -1, true}};
      for (size_t i = begin; i < std::min(cores.size(), begin + per_row); ++i) {
        row.push_back({paint_.Cell(cores[i]), cores[i] >= kFull ? kBad : cores[i] >= kHigh ? kWarn : kGood});
      }
      lines_.push_back(std::move(row));
    }
  }

  void Processes() {
    if (s_.machine.processes.empty()) return;
    const char* order = view_.sort == Sort::kCpu      ? "by CPU"
                        : view_.sort == Sort::kMemory ? "by memory"
                                                      : "by pid";
    Heading(fmt::format("{:>8} {:>6} {:>9} {:>7}  PROCESS ({})", "PID", "cores", "memory", "threads", order));
    std::vector<const Process*> sorted;
    for (const Process& process : s_.machine.processes) sorted.push_back(&process);
    std::ranges::stable_sort(sorted, [&](const Process* a, const Process* b) {
      if (view_.sort == Sort::kCpu && a->cores != b->cores) return a->cores > b->cores;
      if (view_.sort == Sort::kMemory && a->memory != b->memory) return a->memory > b->memory;
      return a->pid < b->pid;
    });
    for (const Process* process : sorted)
      Text(fmt::format("{:>8} {:>6.2f} {:>9} {:>7}  {}", process->pid, process->cores,
                       FormatBytes(process->memory), process->threads, paint_.Clean(process->command)));
  }

  void RunPage(const Run& run) {
    Heading(fmt::format("{}   {} steps, recorded for {}", run.name,
                        FormatCount(static_cast<double>(run.steps)), FormatDuration(run.running_ns)));
    Text(run.directory, -1, false, true);
    Blank();
    Text(run.verdict.empty() ? "no verdict yet" : run.verdict, run.critical ? kBad : -1, true);
    for (const Finding& finding : run.findings) {
      lines_.push_back({{"  "},
                        {finding.id, finding.critical ? kBad : kWarn, true},
                        {"  "},
                        {Elide(paint_.Clean(finding.title),
                               std::max(10, view_.columns - 4 - Columns(finding.id)), view_.unicode)}});
      if (!finding.change.empty()) Text("    -> " + finding.change, kGood);
    }
    Blank();
    if (!run.step_times_ns.empty()) {
      Text(fmt::format("step time, the last minute: {}", FormatDuration(std::llround(run.step_ns))), -1,
           true);
      lines_.push_back({{paint_.Sparkline(run.step_times_ns, view_.columns), 74}});
    }
    Text("shares, the last minute: " + paint_.Legend(run.shares, view_.columns - 26), -1, true);
    for (size_t i = 0; i < run.shares_over_time.size(); ++i) {
      Line row = {{fmt::format("{:>4} s ", -static_cast<int64_t>(run.shares_over_time.size() - 1 - i)), -1,
                   false, true}};
      paint_.ShareBar(row, run.shares_over_time[i], std::max(10, view_.columns - 7));
      lines_.push_back(std::move(row));
    }
  }

  void Help() {
    Heading("KEYS");
    for (const char* line :
         {"up, down, j, k   choose a run; on a page, scroll",
          "Enter            open the run: verdict, findings, shares over time", "Esc, Backspace   back",
          "e                print the run's report", "P, M, N          sort processes by CPU, memory or pid",
          "h, F1, ?         this page", "q, F10           quit"})
      Text(std::string("  ") + line);
    Blank();
    Text("A run's bar is the last minute of its training thread or device:");
    for (const report::ShareLook& look : report::kShareLooks)
      lines_.push_back({{"  "},
                        {view_.unicode ? std::string(look.glyph) : std::string(1, look.ascii), look.ansi},
                        {fmt::format(" {:<10} {}", look.label, look.meaning)}});
  }

  std::vector<Line> Cut() {
    const auto rows = static_cast<size_t>(std::max(2, view_.rows)) - 1;
    const size_t most = lines_.size() > rows ? lines_.size() - rows : 0;
    const auto begin = lines_.begin() + static_cast<std::ptrdiff_t>(std::min(view_.scroll, most));
    std::vector<Line> shown(begin, lines_.end() - begin > static_cast<std::ptrdiff_t>(rows)
                                       ? begin + static_cast<std::ptrdiff_t>(rows)
                                       : lines_.end());
    shown.resize(rows);
    const char* keys = view_.page == Page::kOverview
                           ? " q quit   h help   arrows choose   Enter open   e report   P/M/N sort"
                           : " q quit   Esc back   arrows scroll   e report";
    shown.push_back({{paint_.Fit(keys, view_.columns), -1, false, false, true}});
    for (Line& line : shown) Clip(line);
    return shown;
  }

  // No line is wider than the screen, whatever is in it.
  void Clip(Line& line) const {
    int room = view_.columns;
    for (Span& span : line) {
      const int columns = Columns(span.text);
      if (columns > room) span.text = room > 0 ? Elide(span.text, room, view_.unicode) : "";
      room -= std::min(room, columns);
    }
  }

  const State& s_;
  const View& view_;
  Painter paint_;
  std::vector<Line> lines_;
};

}  // namespace

size_t SelectedRun(const State& state, const View& view) {
  for (size_t i = 0; i < state.runs.size(); ++i) {
    if (state.runs[i].name == view.selected) return i;
  }
  return 0;
}

std::vector<Line> Layout(const State& state, const View& view) { return Screen(state, view).Draw(); }

}  // namespace fullbore::top
