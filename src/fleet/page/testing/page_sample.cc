// Writes made-up jobs, reports and letters as pages, for screenshots and for the tests in tests/report:
//
//   fleet_page_sample DIR     DIR/job.html, job-of-one-run.html, fleet.html, letter.html, letter-without-edits.html

#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "fleet/page/job_page.h"
#include "fleet/page/report_page.h"
#include "fleet/testing/sums_in.h"

namespace fullbore::fleet {

namespace {

constexpr int64_t kSecond = 1'000'000'000, kHour = 3600 * kSecond, kBegin = 1'795'000'000 * kSecond;
constexpr char kHostile[] =
    "</script><script>window.owned = 1</script><img src=x onerror='window.owned = 1'>";

RunAccount ARun(double begin_h, double end_h, int64_t devices) {
  RunAccount run;
  run.id = fmt::format("2026-11-{:02}-0915-train", 1 + static_cast<int>(begin_h / 24));
  run.path = "/shared/runs/" + run.id + ".fbr";
  run.user = "anna";
  run.account = "vision";
  run.partition = "gpu";
  run.device = "NVIDIA H100 80GB HBM3";
  run.devices = devices;
  run.nodes = {"gpu-17", "gpu-18"};
  run.begin_unix_ns = kBegin + static_cast<int64_t>(begin_h * static_cast<double>(kHour));
  run.end_unix_ns = kBegin + static_cast<int64_t>(end_h * static_cast<double>(kHour));
  run.given_ns = (run.end_unix_ns - run.begin_unix_ns) * devices;
  run.ended = true;
  run.exit_status = 0;
  run.verdict = "Training waits for data 31 % of the time; the 2 loader workers need 4.8 cores and have 2.";
  run.command = "python train.py";
  return run;
}

// Parts in thousandths of what was given; the rest is work.
RunAccount With(RunAccount run, const std::vector<Part>& thousandths) {
  int64_t left_ns = run.given_ns;
  for (const Part& part : thousandths) {
    const int64_t ns = run.given_ns / 1000 * part.device_ns;
    AddUp(run.parts, {part.kind, part.cause, ns});
    left_ns -= ns;
  }
  AddUp(run.parts, {Kind::kWork, "", left_ns});
  return run;
}

Job AJob() {
  RunAccount first = With(ARun(0.2, 5.5, 16), {{Kind::kStart, "", 24},
                                               {Kind::kCompile, "", 30},
                                               {Kind::kWarmUp, "", 8},
                                               {Kind::kLost, "", 130},
                                               {Kind::kCheckpoint, "", 42},
                                               {Kind::kWaste, "input-bound", 255},
                                               {Kind::kWaste, "straggler", 40},
                                               {Kind::kPadding, "", 80}});
  RunAccount second = With(ARun(5.7, 11, 16), {{Kind::kStart, "", 26},
                                               {Kind::kCompile, "", 29},
                                               {Kind::kCheckpoint, "", 44},
                                               {Kind::kValidation, "", 30},
                                               {Kind::kWaste, "input-bound", 250},
                                               {Kind::kWaste, "hang", 60}});
  RunAccount third = With(ARun(14, 33, 16), {{Kind::kStart, "", 8},
                                             {Kind::kCheckpoint, "", 40},
                                             {Kind::kValidation, "", 33},
                                             {Kind::kWaste, "input-bound", 240},
                                             {Kind::kPadding, "", 90},
                                             {Kind::kRecomputation, "", 55},
                                             {Kind::kEnd, "", 20}});
  first.exit_status = 137;
  second.ended = false;
  second.cut_off = true;
  second.lost_unknown = true;
  second.exit_status.reset();
  third.use.restarts = 1;
  for (RunAccount* run : {&first, &second, &third}) {
    run->job = "4711";
    run->job_name = "resnet50 " + std::string(kHostile);
    run->job_start_unix_s = (kBegin + (run == &third ? 13 * kHour + kHour / 2 : 0)) / kSecond;
    run->use.cores_given = 128;
    run->use.cores_mean = 9.2;
    run->use.cores_p95 = 11.8;
    run->use.memory_given_bytes = 1'000'000'000'000;
    run->use.memory_peak_bytes = 81'000'000'000;
    run->use.time_given_ns = 48 * kHour;
    run->use.time_used_ns = run->end_unix_ns - kBegin;
    run->use.gpus_given = run->use.gpus_used = 8;
  }
  return JobOf({first, second, third});
}

Job OfOneRun() {
  RunAccount run = ARun(0, 0.01, 1);
  run.account = run.partition = "";
  run.device = "cpu";
  run.nodes = {"laptop"};
  run.given_ns = run.end_unix_ns - run.begin_unix_ns;
  run.parts = {{Kind::kNotJudged, "", run.given_ns}};
  run.verdict = "This recording cannot be judged: no steps were seen.";
  return JobOf({run});
}

std::vector<RunAccount> ManyRuns() {
  const std::vector<Advice> edits = {
      {"input-bound", "too-few-workers", "Training waits for data 31 % of the time.",
       "DataLoader(num_workers=12, persistent_workers=True)", 1.2, 1.45, 1.6, 0},
      {"padding", "", "75 % of the tokens in a batch are padding.", "padding=\"longest\"", 1.3, 1.8, 2.4, 0},
      {"no-tensor-cores", "", "Matrix products run without tensor cores.",
       "torch.autocast(\"cuda\", torch.bfloat16)", 1.1, 1.3, 2.1, 0},
      {"host-other", "logging", "The loop logs in every step (12 % of the time).", "", 1.05, 1.1, 1.14, 0},
      {"comm-bound", "", kHostile, kHostile, 1.02, 1.06, 1.1, 0},
  };
  std::vector<RunAccount> runs;
  for (int i = 0; i < 40; ++i) {
    const int64_t starved = i % 11, talking = i % 3, unjudged = i % 4;
    RunAccount run =
        With(ARun(i * 4.0, i * 4.0 + 2 + i % 7, 1 + i % 8), {{Kind::kWaste, "input-bound", 20 * starved},
                                                             {Kind::kWaste, "comm-bound", 12 * talking},
                                                             {Kind::kStart, "", 15},
                                                             {Kind::kCheckpoint, "", 11},
                                                             {Kind::kNotJudged, "", 40 * unjudged}});
    run.id += fmt::format("-{}", i);
    run.user = i % 5 == 0 ? "anna" : i % 7 == 0 ? kHostile : fmt::format("user{}", i % 19);
    run.advice = {edits[static_cast<size_t>(i / 5) % edits.size()]};
    run.advice.front().steady_ns = run.given_ns / 10 * 9;
    if (i % 6 == 0) {
      run.use.cores_given = 32;
      run.use.cores_mean = run.use.cores_p95 = 1.5;
      run.use.memory_given_bytes = int64_t{256} << 30;
      run.use.memory_peak_bytes = int64_t{9} << 30;
      run.use.gpus_given = 4;
      run.use.gpus_used = i % 4;
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

// With the time before, of which these are every third run.
Report WithTheTimeBefore(const std::vector<RunAccount>& runs) {
  std::vector<RunAccount> earlier;
  for (size_t i = 0; i < runs.size(); i += 3) earlier.push_back(runs[i]);
  const Prices prices{[](const std::string&) { return 2.1; }, ""};
  Report report = ReportOn(SumsIn(runs), By::kUser, {}, prices);
  report.before = TrendsOf(SumsIn(earlier), SumsIn(runs), By::kUser);
  return report;
}

bool Write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "fleet_page_sample: cannot write '%s'\n", path.c_str());
  return static_cast<bool>(file);
}

bool WriteAll(const std::string& directory) {
  const std::vector<RunAccount> runs = ManyRuns();
  return Write(directory + "/job.html", ToHtml(AJob())) &&
         Write(directory + "/job-of-one-run.html", ToHtml(OfOneRun())) &&
         Write(directory + "/fleet.html", ToHtml(WithTheTimeBefore(runs), {""})) &&
         Write(directory + "/letter.html", ToHtml(ReportOn(runs, By::kUser, "anna"), {"anna"})) &&
         Write(directory + "/letter-without-edits.html",
               ToHtml(ReportOn(runs, By::kUser, "nobody"), {"nobody"}));
}

}  // namespace

}  // namespace fullbore::fleet

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fleet_page_sample DIR\n");
    return 2;
  }
  return fullbore::fleet::WriteAll(argv[1]) ? 0 : 1;
}
