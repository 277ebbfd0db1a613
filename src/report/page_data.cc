#include "report/page_data.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/command_line.h"
#include "base/printable.h"
#include "base/text.h"
#include "explain/diagnose/diagnose.h"
#include "record/metrics.h"
#include "report/device_memory.h"
#include "report/figures.h"
#include "report/finding_pages.h"
#include "report/json.h"
#include "report/page_timeline.h"
#include "report/palette.h"
#include "report/terminal.h"
#include "report/thin.h"

namespace fullbore::report {

namespace {

using diagnose::Diagnosis;
using record::Recording;
using record::Stage;
using Json = nlohmann::ordered_json;

constexpr size_t kBuckets = 400;  // of a series: two points each, about what a wide screen can tell apart
constexpr size_t kSeriesOfOneName = 16;  // if one name has more (CPU cores), they share this room
constexpr size_t kWindows = 500;
// Fewer windows than this say too little: a short recording (a trace) is shown step by step.
constexpr size_t kFewWindows = 30;
constexpr size_t kRanksInFull = 64;  // of more, the page shows shares alone
constexpr size_t kHotLines = 15;
constexpr size_t kKernels = 100;  // of each rank: the page shows the first few, and finds the others
constexpr size_t kMessages = 100;

// Four significant digits: a chart shows no more, and the file is half as long.
double Rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

// Milliseconds from the beginning of a stage: whole ones, which keeps the file small, but to the microsecond
// for a short stage (a trace may have a single step).
class StageClock {
 public:
  explicit StageClock(const Stage& stage)
      : begin_ns_(stage.begin_ns), per_ms_(stage.end_ns - stage.begin_ns < kShortNs ? 1e3 : 1) {}

  double MsAt(int64_t t_ns) const {
    return std::round(static_cast<double>(t_ns - begin_ns_) / 1e6 * per_ms_) / per_ms_;
  }

 private:
  static constexpr int64_t kShortNs = 60'000'000'000;
  int64_t begin_ns_;
  double per_ms_;
};

Json SeriesData(const record::Series& series, const StageClock& clock, size_t buckets) {
  Json times = Json::array(), values = Json::array();
  for (const record::Reading& reading : Thin(series.readings, buckets)) {
    if (!std::isfinite(reading.value)) continue;
    times.push_back(clock.MsAt(reading.t_ns));
    values.push_back(Rounded(reading.value));
  }
  return {{"key", record::LabelledName(series.key)}, {"name", series.key.name}, {"unit", series.key.unit},
          {"labels", Json(series.key.labels)},       {"t", std::move(times)},   {"v", std::move(values)}};
}

Json AllSeries(const Stage& stage) {
  std::map<std::string, size_t> of_name;
  for (const record::Series& series : stage.series) ++of_name[series.key.name];
  Json all = Json::array();
  for (const record::Series& series : stage.series) {
    if (series.readings.empty() || series.key.unit == "bitmask") continue;
    if (IsOf(series.key, record::Metric::kLoggedStep)) continue;  // numbers steps, and is no quantity
    const size_t crowd = std::max<size_t>(1, of_name[series.key.name] / kSeriesOfOneName);
    all.push_back(SeriesData(series, StageClock(stage), std::max<size_t>(kBuckets / crowd, 20)));
  }
  return all;
}

// One window per step, if the recording is short and has all its steps in full.
std::vector<record::StepWindow> WindowsToShow(const record::RankInfo& rank) {
  int64_t steps = 0;
  for (const record::StepWindow& window : rank.windows) steps += window.steps;
  const bool all = steps == static_cast<int64_t>(rank.steps.size());
  if (!all || rank.windows.size() >= kFewWindows || rank.steps.size() > kWindows)
    return Merge(rank.windows, kWindows);
  std::vector<record::StepWindow> windows;
  for (const record::Step& step : rank.steps) {
    windows.push_back({step.end_ns - step.wall_ns, step.end_ns, step.index, 1, step.samples, step.wall_ns,
                       step.wall_ns, step.share_ns, step.host_other_ns});
  }
  return windows;
}

// By column: one array per quantity. Shares are ratios of the window's steps.
Json WindowsData(const record::RankInfo& rank, const Stage& stage) {
  const StageClock clock(stage);
  Json data;
  for (const char* column : {"t", "width", "steps", "samples", "min", "max"}) data[column] = Json::array();
  data["shares"] = Json::object();
  const std::vector<record::StepWindow> windows = WindowsToShow(rank);
  record::ShareTimes total{};
  for (const record::StepWindow& window : windows) {
    for (size_t i = 0; i < record::kShareCount; ++i) total[i] += window.share_ns[i];
  }
  for (const record::StepWindow& window : windows) {
    int64_t wall_ns = 0;
    for (int64_t share_ns : window.share_ns) wall_ns += share_ns;
    if (window.steps == 0 || wall_ns <= 0)
      continue;  // the first mark of a script ends a step that nothing began
    data["t"].push_back(clock.MsAt(window.end_ns - wall_ns));
    data["width"].push_back(Rounded(static_cast<double>(wall_ns) / 1e6));
    data["steps"].push_back(window.steps);
    data["samples"].push_back(rank.samples_known ? window.samples : 0);
    data["min"].push_back(Rounded(static_cast<double>(window.min_wall_ns) / 1e6));
    data["max"].push_back(Rounded(static_cast<double>(window.max_wall_ns) / 1e6));
    for (size_t i = 0; i < record::kShareCount; ++i) {
      if (total[i] == 0) continue;
      const double ratio =
          static_cast<double>(window.share_ns[i]) / static_cast<double>(std::max<int64_t>(wall_ns, 1));
      data["shares"][std::string(Name(static_cast<record::Share>(i)))].push_back(Rounded(ratio));
    }
  }
  return data;
}

Json HotLines(const record::RankInfo& rank) {
  std::vector<record::HotLine> lines = rank.hot_lines;
  int64_t all = 0;
  for (const record::HotLine& line : lines) all += line.samples;
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.samples > b.samples; });
  lines.resize(std::min(lines.size(), kHotLines));
  Json data = Json::array();
  for (const record::HotLine& line : lines) {
    if (line.samples == 0) break;
    if (line.file.empty()) continue;  // the sum of rare ones
    data.push_back({{"share", Name(line.share)},
                    {"file", line.file},
                    {"line", line.line},
                    {"function", line.function},
                    {"text", line.text},
                    {"part", static_cast<double>(line.samples) / static_cast<double>(all)}});
  }
  return data;
}

Json LoaderData(const record::Loader& loader) {
  Json data = {{"where", loader.where.substr(loader.where.rfind('/') + 1)}, {"dataset", loader.dataset}};
  if (loader.library.empty()) {
    data["workers"] = loader.num_workers;
    data["pinned memory"] = loader.pin_memory ? "yes" : "no";
    data["persistent workers"] = loader.persistent_workers ? "yes" : "no";
  } else {
    data["library"] = loader.library;
    if (loader.library == record::kFullboreData) {
      data["threads"] =
          loader.threads.value_or(0) > 0 ? std::to_string(*loader.threads) : "chosen by the loader";
    }
    if (loader.map_processes.value_or(0) > 0) data["processes of your own stage"] = *loader.map_processes;
  }
  if (loader.batch_size) data["batch size"] = *loader.batch_size;
  if (loader.prefetch_factor) data["prefetch factor"] = *loader.prefetch_factor;
  if (loader.dataset_samples) data["samples"] = FormatCount(static_cast<double>(*loader.dataset_samples));
  data["feeds the training"] = loader.feeds_training ? "yes" : "no";
  if (loader.batches > 0) {
    data["time to fetch a batch"] = FormatDuration(loader.fetch_ns / loader.batches);
    if (loader.fetch_ns > 0) {
      data["of that on a core"] =
          FormatPercent(static_cast<double>(loader.cpu_ns) / static_cast<double>(loader.fetch_ns));
    }
  }
  return data;
}

Json Kernels(const record::RankInfo& rank) {
  Json data = Json::array();
  if (!rank.tables) return data;
  int64_t all_ns = 0;
  for (const record::KernelStats& kernel : rank.tables->kernels) all_ns += kernel.sum_ns;
  for (const record::KernelStats& kernel : rank.tables->kernels) {
    if (data.size() == kKernels || kernel.sum_ns == 0) break;
    data.push_back({{"name", kernel.name},
                    {"class", kernel.kernel_class},
                    {"count", kernel.count},
                    {"sum_ns", kernel.sum_ns},
                    {"mean_ns", kernel.sum_ns / std::max<int64_t>(kernel.count, 1)},
                    {"part", static_cast<double>(kernel.sum_ns) / static_cast<double>(all_ns)}});
  }
  return data;
}

Json RanksData(const Stage& stage) {
  Json ranks = Json::array();
  for (const record::RankInfo& rank : stage.ranks) {
    if (ranks.size() == kRanksInFull) break;
    Json loaders = Json::array();
    for (const record::Loader& loader : rank.loaders) loaders.push_back(LoaderData(loader));
    ranks.push_back({{"rank", rank.rank},
                     {"device", rank.device},
                     {"windows", WindowsData(rank, stage)},
                     {"hot_lines", HotLines(rank)},
                     {"kernels", Kernels(rank)},
                     {"loaders", std::move(loaders)}});
  }
  return ranks;
}

std::string StageText(const Stage& stage) {
  std::string text = FormatDuration(stage.end_ns - stage.begin_ns);
  if (stage.exit_status && *stage.exit_status != 0)
    text += ", exit status " + std::to_string(*stage.exit_status);
  if (stage.state == record::StageState::kRunning) text += ", unfinished";
  return text + ": " + ShellLine(stage.command);
}

std::string_view Name(record::Severity severity) {
  switch (severity) {
    case record::Severity::kInfo:
      return "info";
    case record::Severity::kWarning:
      return "warning";
    case record::Severity::kError:
      return "error";
  }
  return "info";
}

Json MessagesData(const Stage& stage) {
  Json data = Json::array();
  for (const record::Message& message : stage.messages) {
    if (data.size() == kMessages) break;
    Json one = {{"severity", Name(message.severity)}, {"source", message.source}, {"text", message.text}};
    if (message.t_ns) one["t_ms"] = StageClock(stage).MsAt(*message.t_ns);
    data.push_back(std::move(one));
  }
  return data;
}

Json FiguresData(const Diagnosis& d) {
  Json data = Json::array();
  if (d.sampled)
    data.push_back(Json::array({"shares", SampledText(*d.sampled)}));
  else if (d.steps > 0)
    data.push_back(d.fitness.Forbids(fitness::Conclusion::kRates)
                       ? Json::array({StepWord(d), FormatDuration(static_cast<int64_t>(d.mean_step_ns))})
                       : Json::array({"throughput", RateText(d)}));
  if (const std::string tokens = TokenRateText(d); !tokens.empty())
    data.push_back(Json::array({"tokens", tokens}));
  if (const std::string flops = FlopsText(d); !flops.empty()) data.push_back(Json::array({"model", flops}));
  for (const std::vector<Figure>& figures : {DeviceFigures(d), HostFigures(d)}) {
    for (const Figure& figure : figures) data.push_back(Json::array({figure.label, figure.value}));
  }
  return data;
}

// Of each finding that the report names: what it is, how to confirm it and how to fix it, in Markdown.
Json FindingPagesData(const Diagnosis& d) {
  Json data = Json::object();
  for (const diagnose::Finding& finding : d.findings)
    if (const auto page = FindingPage(finding.id)) data[finding.id] = *page;
  return data;
}

void AddStage(Json& data, const Diagnosis& d, const Recording& recording, const Stage& stage) {
  data["stage"] = stage.name;
  data["command"] = ShellLine(stage.command);
  data["directory"] = stage.directory;
  if (recording.wall_offset_ns != 0) data["begin_utc"] = FormatUtc(stage.begin_ns + recording.wall_offset_ns);
  data["begin_ns"] = stage.begin_ns;
  data["end_ms"] = StageClock(stage).MsAt(stage.end_ns);
  if (const std::string regimes = RegimesText(d); !regimes.empty()) data["regimes"] = regimes;
  data["steady_ms"] = d.warmup_steps > 0 ? std::max(0.0, StageClock(stage).MsAt(d.begin_ns)) : 0.0;
  data["series"] = AllSeries(stage);
  data["ranks"] = RanksData(stage);
  data["timeline"] = TimelineData(stage);
  data["messages"] = MessagesData(stage);
}

Json LooksData(std::span<const ShareLook> looks) {
  Json data = Json::array();
  for (const ShareLook& look : looks) {
    data.push_back({{"name", look.name},
                    {"label", look.label},
                    {"meaning", look.meaning},
                    {"light", look.light},
                    {"dark", look.dark}});
  }
  return data;
}

// The parts of the device's memory in words, by their names.
Json MemoryTexts(const Diagnosis& d) {
  Json texts = {{"title", MemoryTitle(d)}, {"shares", MemoryShares(*d.memory)}, {"parts", Json::object()}};
  for (const diagnose::MemoryPart& part : d.memory->parts) texts["parts"][part.name] = MemoryPartText(part);
  return texts;
}

}  // namespace

Json PaletteData() { return LooksData(kShareLooks); }

std::string PageTitle(const Diagnosis& d) {
  const std::string id = d.run_id.empty() ? d.source : d.run_id;
  return Printable(d.findings.empty() ? id : id + ": " + d.findings.front().id, true);
}

Json PageData(const Diagnosis& d, const Recording& recording) {
  Json data = {{"report", ToJson(d)}};
  data["verdict"] = VerdictText(d);
  data["refused"] = IsRefused(d);
  data["step_word"] = StepWord(d);
  data["limits"] = LimitTexts(d);
  data["caveats"] = CaveatTexts(d);
  data["failure"] = FailureText(d);
  data["subject"] = SubjectParts(d);
  data["figures"] = FiguresData(d);
  data["palette"] = PaletteData();
  data["memory_palette"] = LooksData(kMemoryLooks);
  if (d.memory) data["memory"] = MemoryTexts(d);
  if (d.memory_what_if) data["memory_what_if"] = MemoryWhatIfText(*d.memory_what_if);
  data["finding_pages"] = FindingPagesData(d);
  data["text"] = ToTerminal(d, {100, false, true});
  data["stages"] = Json::array();
  for (const Stage& stage : recording.stages) {
    data["stages"].push_back({{"name", stage.name}, {"text", StageText(stage)}});
  }
  const Stage* stage = diagnose::JudgedStage(recording, d.stage);
  static const Stage kNothing;
  AddStage(data, d, recording, stage ? *stage : kNothing);
  return data;
}

}  // namespace fullbore::report
