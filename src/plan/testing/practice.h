// Recordings made by hand of one measured case: ResNet-50 on photos, with mixed precision, on a T4 with 4 cores of which
// two are one of the chip. One worker delivers 177 images a second, the T4 trains 260 of them, a V100 760. What follows
// from them is not in here.
#pragma once

#include "explain/diagnose/testing/a_run.h"
#include "plan/market_file.h"
#include "plan/plan.h"
#include "plan/recorded.h"

namespace fullbore::plan::testing {

using diagnose::testing::ARun;
using diagnose::testing::kMs;

struct Made {
  const char* device = "Tesla T4";
  int64_t batch = 128;
  double images_per_s = 260;
  int64_t workers = 2;
  int cores = 4, cores_of_chip = 2;
  double images_per_s_of_worker = 177;
  double waits = 0;  // of the step, for data
};

inline ARun ARunOf(const Made& made) {
  const double step_ms = 1e3 * static_cast<double>(made.batch) / made.images_per_s;
  const auto data_ms = static_cast<int64_t>(made.waits * step_ms);
  const auto rest = static_cast<int64_t>(step_ms) - data_ms;
  ARun run(diagnose::testing::MadeRun({diagnose::testing::MadeRank(0, 100, [&](int64_t) {
    return diagnose::testing::MadeStep{data_ms, rest * 3 / 10, rest - rest * 3 / 10 - 5, 5};
  })}));
  run.OnCores(made.cores);
  for (record::Step& step : run.rank().steps) step.samples = made.batch;
  const auto fetch_ms =
      static_cast<int64_t>(1e3 * static_cast<double>(made.batch) / made.images_per_s_of_worker);
  record::Loader loader = diagnose::testing::MadeLoader(made.workers, 100, fetch_ms, fetch_ms);
  loader.samples = made.batch * 100;
  loader.batch_size = made.batch;
  loader.dataset_samples = 50'000;
  run.FedBy(loader);
  run.rank().device = "cuda:0";
  run.rank().facts = {{"device", "\"cuda:0 (" + std::string(made.device) + ")\""},
                      {"parameters", "44000000"},
                      {"parameter_dtype", "\"float32\""}};
  run.Reading(record::Metric::kProcessCpu, 0.1, {{"role", "trainer"}});
  record::Recording recording = run;
  recording.id = "made-" + std::to_string(made.batch);
  recording.machine["cores_physical"] = std::to_string(made.cores_of_chip);
  recording.machine["gpu0"] = made.device;
  recording.stages.front().command = {"python", "train.py"};
  return ARun(recording);
}

inline Recorded RecordedOn(const Made& made) { return RecordedOf(ARunOf(made)); }

inline Made AT4() { return {}; }
inline Made AV100() {
  return {
      .device = "Tesla V100-SXM2-16GB", .images_per_s = 760, .workers = 6, .cores = 12, .cores_of_chip = 6};
}

// A T4 with 4 cores for 0.35 an hour, as often as wanted; a V100 with 12 for seven times that.
inline constexpr char kShop[] = R"(
[[machine]]
name = "small"
device = "T4"
cores = 4
threads_per_core = 2
up_to = 8
per_hour = 0.35
source = "made"
date = 2026-11-29
[[machine]]
name = "large"
device = "V100"
cores = 12
threads_per_core = 2
per_hour = 2.45
source = "made"
date = 2026-11-29
)";

inline Market Shop(const std::string& text = kShop) {
  auto market = ParseMarket(text, "shop.toml");
  FB_CHECK(market.ok());
  return *market;
}

// Null where the plan has no such row.
inline const Row* RowOf(const Plan& plan, std::string_view device, int64_t gpus) {
  for (const Row& row : plan.rows) {
    if (row.estimate.setup.device_name.starts_with(device) && row.estimate.setup.gpus == gpus) return &row;
  }
  return nullptr;
}

}  // namespace fullbore::plan::testing
