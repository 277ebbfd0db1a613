#include "report/run_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/clock.h"
#include "base/csv.h"
#include "record/metrics.h"
#include "report/thin.h"

namespace fullbore::report {

namespace {

constexpr size_t kMostBytesOfAReading = 41;  // "-2305843009.214,-2.2250738585072014e-308\n"

double Seconds(int64_t ns) { return static_cast<double>(ns) / kNsPerSecond; }

// What windows and single steps have in common.
std::string StepLine(const std::string& head, const record::StepWindow& steps, bool samples_known) {
  int64_t all_ns = 0;
  for (const int64_t ns : steps.share_ns) all_ns += ns;
  std::string line = head + fmt::format("{},{},{:.6f},{:.6f},", steps.first_step, steps.steps,
                                        Seconds(steps.begin_ns), Seconds(steps.end_ns));
  if (samples_known) line += std::to_string(steps.samples);
  line += fmt::format(",{:.9f},{:.9f},{:.9f}", Seconds(all_ns / std::max<int64_t>(1, steps.steps)),
                      Seconds(steps.min_wall_ns), Seconds(steps.max_wall_ns));
  for (const int64_t ns : steps.share_ns)
    line +=
        fmt::format(",{:.6f}", static_cast<double>(ns) / static_cast<double>(std::max<int64_t>(1, all_ns)));
  return line + "\n";
}

record::StepWindow AsWindow(const record::Step& step) {
  return {step.end_ns - step.wall_ns,
          step.end_ns,
          step.index,
          1,
          step.samples,
          step.wall_ns,
          step.wall_ns,
          step.share_ns,
          step.host_other_ns};
}

std::string StepsOf(const record::Stage& stage, const record::RankInfo& rank) {
  const std::string head = fmt::format("{},{},", CsvCell(stage.name), rank.rank);
  std::string lines;
  const auto add = [&](const char* kind, record::StepWindow steps) {
    steps.begin_ns -= stage.begin_ns;
    steps.end_ns -= stage.begin_ns;
    lines += StepLine(fmt::format("{}{},", head, kind), steps, rank.samples_known);
  };
  for (const record::StepWindow& window : rank.windows) add("window", window);
  for (const record::Step& step : rank.steps) add("step", AsWindow(step));
  return lines;
}

}  // namespace

std::string SeriesCsv(const record::Recording& recording, size_t max_bytes) {
  size_t count = 0;
  for (const record::Stage& stage : recording.stages) count += stage.series.size();
  std::string csv(kSeriesColumns);
  for (const record::Stage& stage : recording.stages) {
    for (const record::Series& series : stage.series) {
      const std::string head = CsvCell(stage.name) + "," + CsvCell(record::LabelledName(series.key)) + "," +
                               CsvCell(series.key.unit) + ",";
      const size_t most = max_bytes / count / (head.size() + kMostBytesOfAReading);
      if (most < 2) continue;  // no recorder gives a series such a name
      for (const record::Reading& reading : Thin(series.readings, most / 2)) {
        const double seconds = Seconds(reading.t_ns - stage.begin_ns);
        csv += head + fmt::format("{:.3f},{}\n", seconds, reading.value);
      }
    }
  }
  return csv;
}

std::string StepsColumns() {
  std::string columns = "stage,rank,kind,first_step,steps,begin_s,end_s,samples,step_s,min_step_s,max_step_s";
  for (size_t i = 0; i < record::kShareCount; ++i)
    columns += fmt::format(",{}", record::Name(static_cast<record::Share>(i)));
  return columns + "\n";
}

std::string StepsCsv(const record::Recording& recording) {
  std::string csv = StepsColumns();
  for (const record::Stage& stage : recording.stages) {
    for (const record::RankInfo& rank : stage.ranks) csv += StepsOf(stage, rank);
  }
  return csv;
}

}  // namespace fullbore::report
