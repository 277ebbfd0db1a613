#include "explain/diagnose/view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "explain/diagnose/places.h"
#include "explain/diagnose/statistics.h"
#include "explain/diagnose/thresholds.h"

namespace fullbore::diagnose {

using record::Metric;
using record::RankInfo;
using record::Reading;
using record::Share;
using record::Step;
using record::StepWindow;

namespace {

constexpr int64_t kReadingsToSpareOne = 3;
// Without a named cause, a slow start that takes more of the run's steps than this is how the run is.
constexpr double kMaxWarmup = 0.2;
// Steps under a profiler of ours are left out of a recording: so many at most.
constexpr int64_t kLongestHole = 64;
constexpr double kBarePart = 0.05;  // of a step: what a finding begins at

template <typename Of>
void AddTo(RankView& view, const Of& part, int64_t steps, int64_t wall_ns) {
  view.steps += steps;
  view.wall_ns += wall_ns;
  view.samples += part.samples;
  for (size_t i = 0; i < record::kShareCount; ++i) view.share_ns[i] += part.share_ns[i];
  for (size_t i = 0; i < record::kHostOtherCount; ++i) view.host_other_ns[i] += part.host_other_ns[i];
}

int64_t WallOf(const StepWindow& window) {
  int64_t wall_ns = 0;
  for (const int64_t ns : window.share_ns) wall_ns += ns;
  return wall_ns;
}

int64_t StepsOf(const RankInfo& info) {
  int64_t steps = info.steps.empty() ? 0 : info.steps.back().index + 1;
  for (const StepWindow& window : info.windows) steps = std::max(steps, window.first_step + window.steps);
  return steps;
}

// Whether something is known that makes the first steps slow for a while: a compiler, cuDNN's search for the
// fastest kernels, or a loader whose workers and caches were still cold.
bool StartIsNamed(const RankInfo& info, int64_t slow_steps) {
  const auto fact = [&](const char* name) {
    const auto found = info.facts.find(name);
    return found == info.facts.end() ? std::string() : found->second;
  };
  if (!fact("compile").empty()) return true;
  if (fact("cudnn_benchmark") == "true" && info.device.starts_with("cuda")) return true;
  double slow_ns = 0, slow_wait_ns = 0, rest_ns = 0, rest_wait_ns = 0;
  int64_t rest_steps = 0;
  // The first step alone may take as long as all the others: libraries start in it, which says nothing of these.
  const int64_t since = slow_steps > 1 ? 1 : 0;
  for (const Step& step : info.steps) {
    if (step.index < since) continue;
    const bool slow = step.index < slow_steps;
    (slow ? slow_ns : rest_ns) += static_cast<double>(step.wall_ns);
    (slow ? slow_wait_ns : rest_wait_ns) += static_cast<double>(step.share_ns[Index(Share::kDataWait)]);
    rest_steps += !slow;
  }
  if (rest_steps == 0 || slow_steps == 0) return false;
  const auto excess = [&](double slow, double rest) {
    return slow / static_cast<double>(slow_steps - since) - rest / static_cast<double>(rest_steps);
  };
  return excess(slow_wait_ns, rest_wait_ns) > 0.5 * excess(slow_ns, rest_ns);
}

// Whether the kernels of a part of the step were not recorded: what it looks like is not what it was.
bool IsBare(const Step& step, const record::Noticed& noticed) {
  int64_t bare_ns = 0;
  for (const auto& bare : noticed.bare) {
    const int64_t both =
        std::min(bare.end_ns, step.end_ns) - std::max(bare.begin_ns, step.end_ns - step.wall_ns);
    bare_ns += std::max<int64_t>(0, both);
  }
  return static_cast<double>(bare_ns) > kBarePart * static_cast<double>(step.wall_ns);
}

// Leaves such steps out where enough others remain to be judged alone.
void LeaveOutBare(RankView& view) {
  const auto bare =
      std::ranges::count_if(view.steady, [&](const Step* step) { return IsBare(*step, view.info->noticed); });
  if (static_cast<int64_t>(view.steady.size()) - bare < kStepsForWarning) return;
  view.bare_steps = bare;
  std::erase_if(view.steady, [&](const Step* step) { return IsBare(*step, view.info->noticed); });
}

RankView ViewOf(const RankInfo& info) {
  RankView view;
  view.info = &info;
  // The warm-up is judged on the unbroken first stretch of steps that were kept in full.
  std::vector<double> wall_ns;
  for (const Step& step : info.steps) {
    const auto next = static_cast<int64_t>(wall_ns.size());
    if (step.index < next || step.index > next + kLongestHole) break;
    wall_ns.resize(static_cast<size_t>(step.index) + 1, static_cast<double>(step.wall_ns));
  }
  const int64_t all_steps = StepsOf(info);
  const auto longest = static_cast<size_t>(
      std::max<int64_t>(1, static_cast<int64_t>(kMaxWarmup * static_cast<double>(all_steps))));
  view.warmup_steps = static_cast<int64_t>(WarmupSteps(wall_ns, longest));
  const auto slow = static_cast<int64_t>(WarmupSteps(wall_ns, wall_ns.size()));
  if (slow > view.warmup_steps) {
    if (StartIsNamed(info, slow))
      view.warmup_steps = slow;
    else
      view.slow_steps = slow - view.warmup_steps;
  }
  for (const Step& step : info.steps) {
    if (step.index >= view.warmup_steps) {
      view.steady.push_back(&step);
      continue;
    }
    ++view.warmup_recorded;
    view.warmup_ns += step.wall_ns;
  }
  LeaveOutBare(view);
  int64_t windowed = 0;
  for (const StepWindow& window : info.windows) windowed += window.steps;
  if (windowed <= static_cast<int64_t>(info.steps.size())) {  // all of them were kept in full
    for (const Step* step : view.steady) AddTo(view, *step, 1, step->wall_ns);
  } else {
    for (const StepWindow& window : info.windows) {
      if (window.first_step >= view.warmup_steps) AddTo(view, window, window.steps, WallOf(window));
    }
  }
  if (!view.steady.empty()) {
    view.begin_ns = view.steady.front()->end_ns - view.steady.front()->wall_ns;
    view.end_ns = view.steady.back()->end_ns;
  }
  for (const StepWindow& window : info.windows) view.end_ns = std::max(view.end_ns, window.end_ns);
  return view;
}

// Without labels, every series of the metric; else only the one with exactly these: there are sums by role
// beside sums by rank.
bool Matches(const record::SeriesKey& key, Metric metric, const record::Labels& labels) {
  return IsOf(key, metric) && (labels.empty() || key.labels == labels);
}

// A reading covers the time since the previous one, so the first of a window began before it. In the first seconds of a
// run that is most of what was read, and says what the start did.
double PartInside(const Reading& previous, const Reading& reading, int64_t begin_ns) {
  if (previous.t_ns >= begin_ns || reading.t_ns <= previous.t_ns) return 1;
  return static_cast<double>(reading.t_ns - begin_ns) / static_cast<double>(reading.t_ns - previous.t_ns);
}

// Calls visit(mean, max) for each series that matches and has readings in the window.
template <typename Visit>
void ForEachMatch(const View& view, Metric metric, const record::Labels& labels, Visit visit) {
  for (const record::Series& series : view.stage().series) {
    if (!Matches(series.key, metric, labels) || !view.IsOurs(series.key)) continue;
    double sum = 0, weights = 0, largest = 0;
    const auto inside = [&](const Reading& reading) {
      return reading.t_ns >= view.begin_ns() && reading.t_ns <= view.end_ns();
    };
    const bool enough = std::ranges::count_if(series.readings, inside) >= kReadingsToSpareOne;
    const Reading* before = nullptr;
    bool first = true;
    for (const Reading& reading : series.readings) {
      const Reading* const previous = std::exchange(before, &reading);
      if (!inside(reading) || (std::exchange(first, false) && enough)) continue;
      const double weight = previous ? PartInside(*previous, reading, view.begin_ns()) : 1;
      sum += weight * reading.value;
      largest = weights > 0 ? std::max(largest, reading.value) : reading.value;
      weights += weight;
    }
    if (weights > 0) visit(sum / weights, largest);
  }
}

}  // namespace

double RankView::Ratio(Share share) const {
  return wall_ns ? static_cast<double>(share_ns[Index(share)]) / static_cast<double>(wall_ns) : 0;
}

double RankView::Ratio(record::HostOther part) const {
  return wall_ns
             ? static_cast<double>(host_other_ns[static_cast<size_t>(part)]) / static_cast<double>(wall_ns)
             : 0;
}

const record::Loader* RankView::TrainingLoader() const {
  const record::Loader* best = nullptr;
  for (const record::Loader& loader : info->loaders) {
    if (loader.feeds_training && (!best || loader.batches > best->batches)) best = &loader;
  }
  return best;
}

View::View(const record::Recording& recording, const record::Stage& stage)
    : recording_(&recording), stage_(&stage) {
  for (const RankInfo& info : stage.ranks) {
    RankView view = ViewOf(info);
    if (view.steps > 0) ranks_.push_back(std::move(view));
  }
  std::vector<const record::StepGraph*> graphs;
  for (const RankView& rank : ranks_) {
    if (rank.info->graph) graphs.push_back(&*rank.info->graph);
  }
  for (RankView& rank : ranks_) rank.graphs = graphs;
  begin_ns_ = stage.begin_ns;
  end_ns_ = stage.end_ns;
  if (HasSteps()) {
    begin_ns_ = lead().begin_ns;
    end_ns_ = lead().end_ns;
    for (const RankView& rank : ranks_) end_ns_ = std::max(end_ns_, rank.end_ns);
  }
  const auto cores = recording.machine.find("cores");
  if (cores != recording.machine.end()) cores_ = ParseDouble(cores->second).value_or(0);
  for (const record::Series& series : stage.series) {
    const auto owner = series.key.labels.find("owner"), gpu = series.key.labels.find("gpu");
    if (!IsOf(series.key, Metric::kGpuProcessMemory) || owner == series.key.labels.end() ||
        gpu == series.key.labels.end())
      continue;
    const bool used = std::any_of(series.readings.begin(), series.readings.end(),
                                  [](const Reading& r) { return r.value > 0; });
    if (owner->second == "command" && used) used_gpus_.insert(gpu->second);
  }
}

std::optional<Sampling> View::sampling() const {
  if (!HasSteps()) return std::nullopt;
  const auto fact = lead().info->facts.find("sampled");
  if (fact == lead().info->facts.end()) return std::nullopt;
  const auto json = nlohmann::json::parse(fact->second, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("samples") || !json["samples"].is_number() ||
      !json.contains("points") || !json["points"].is_number())
    return std::nullopt;
  return Sampling{json["samples"].get<int64_t>(), json["points"].get<double>()};
}

size_t View::RanksOnLeadsMachine() const {
  return static_cast<size_t>(std::ranges::count_if(
      ranks_, [&](const RankView& rank) { return rank.info->node == lead().info->node; }));
}

bool View::IsBesideLead(const RankView& rank) const {
  if (rank.info->node != lead().info->node) return false;
  const int64_t both = std::min(rank.end_ns, lead().end_ns) - std::max(rank.begin_ns, lead().begin_ns);
  return 2 * both > lead().end_ns - lead().begin_ns;
}

size_t View::RanksBesideEachOther() const {
  if (!HasSteps()) return 1;
  const auto beside = std::ranges::count_if(ranks_, [&](const RankView& rank) { return IsBesideLead(rank); });
  return std::max<size_t>(1, static_cast<size_t>(beside));
}

bool View::IsOurs(const record::SeriesKey& key) const {
  const auto gpu = key.labels.find("gpu");
  return used_gpus_.empty() || gpu == key.labels.end() || used_gpus_.count(gpu->second);
}

std::optional<double> View::Mean(Metric metric, const record::Labels& labels) const {
  double sum = 0;
  size_t count = 0;
  ForEachMatch(*this, metric, labels, [&](double mean, double) { sum += mean, ++count; });
  if (!count) return std::nullopt;
  return sum / static_cast<double>(count);
}

bool View::IsSettled(Metric metric, const record::Labels& labels) const {
  return std::ranges::any_of(stage_->series, [&](const record::Series& series) {
    return Matches(series.key, metric, labels) &&
           std::ranges::count_if(series.readings, [&](const Reading& reading) {
             return reading.t_ns >= begin_ns_ && reading.t_ns <= end_ns_;
           }) >= kReadingsToSpareOne;
  });
}

std::optional<double> View::Sum(Metric metric, const record::Labels& labels) const {
  std::optional<double> sum;
  ForEachMatch(*this, metric, labels, [&](double mean, double) { sum = sum.value_or(0) + mean; });
  return sum;
}

std::optional<double> View::Max(Metric metric, const record::Labels& labels) const {
  std::optional<double> most;
  ForEachMatch(*this, metric, labels,
               [&](double, double largest) { most = std::max(most.value_or(largest), largest); });
  return most;
}

namespace {

// A reading covers the time since the previous one, so the first one after `t_ns` began before it and is left out.
void AddReadingsAfter(int64_t t_ns, const record::Series& series, double* sum, size_t* count) {
  bool first = true;
  for (const Reading& reading : series.readings) {
    if (reading.t_ns <= t_ns || std::exchange(first, false)) continue;
    *sum += reading.value;
    ++*count;
  }
}

}  // namespace

std::optional<double> View::MeanAfterSteps(Metric metric) const {
  double sum = 0;
  size_t count = 0;
  for (const record::Series& series : stage_->series) {
    if (IsOf(series.key, metric) && IsOurs(series.key)) AddReadingsAfter(end_ns_, series, &sum, &count);
  }
  if (!count) return std::nullopt;
  return sum / static_cast<double>(count);
}

std::optional<double> View::CoresAfterSteps() const {
  std::optional<double> cores;
  for (const record::Series& series : stage_->series) {
    double sum = 0;
    size_t count = 0;
    const bool of_role = !series.key.labels.contains("rank");  // ranks are part of their role
    if (IsOf(series.key, Metric::kProcessCpu) && of_role) AddReadingsAfter(end_ns_, series, &sum, &count);
    if (count) cores = cores.value_or(0) + sum / static_cast<double>(count);
  }
  return cores;
}

std::optional<double> View::CoresOfCommand() const {
  std::optional<double> cores;
  for (const char* role : {"trainer", "loader", "other"}) {
    if (const auto of_role = Mean(Metric::kProcessCpu, {{"role", role}}))
      cores = cores.value_or(0) + *of_role;
  }
  return cores;
}

std::optional<double> View::CoresOfOthers() const {
  const auto logical = recording_->machine.find("cores_logical");
  const auto busy = Mean(Metric::kCpuUtilization), own = CoresOfCommand();
  if (logical == recording_->machine.end() || !busy || !own) return std::nullopt;
  const double others = std::max(0.0, *busy * ParseDouble(logical->second).value_or(0) - *own);
  // The machine may have more cores than the command may use: of these they keep no more busy than it leaves.
  return cores_ > 0 ? std::min(others, std::max(0.0, cores_ - *own)) : others;
}

std::optional<double> View::NarrowAffinity(const char* role) const {
  constexpr double kOneFewer = 0.5;  // of whole cores
  const auto allowed = Mean(Metric::kProcessCpusAllowed, {{"role", role}});
  return allowed && *allowed >= 1 && *allowed + kOneFewer < cores_ ? allowed : std::nullopt;
}

bool View::has_gpu() const {
  return std::any_of(stage_->series.begin(), stage_->series.end(),
                     [](const record::Series& series) { return series.key.labels.contains("gpu"); });
}

bool View::ComputesOnCpu() const {
  if (ranks_.empty() || lead().info->device_activity) return false;
  const std::string& device = lead().info->device;
  return device.empty() ? !has_gpu() : device == "cpu";
}

std::optional<std::string> View::Fact(const std::string& key) const {
  if (ranks_.empty()) return std::nullopt;
  const auto at = ranks_.front().info->facts.find(key);
  if (at == ranks_.front().info->facts.end()) return std::nullopt;
  std::string text = at->second;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

std::vector<Place> View::HottestLines(Share share, size_t most) const {
  if (ranks_.empty()) return {};
  const std::vector<record::HotLine>& lines = lead().info->hot_lines;
  double all = 0;
  for (const record::HotLine& line : lines) all += static_cast<double>(line.samples);
  auto places = PlacesOf(
      lines, [&](const record::HotLine& line) { return line.share == share; }, all);
  if (places.size() > most) places.resize(most);
  return places;
}

}  // namespace fullbore::diagnose
