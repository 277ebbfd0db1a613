// What a recording claims in numbers, without limits: a golden run whose facts about machine and rank, and whose loader,
// are set to extremes, read as run files are and judged. A number that somebody counts to shows as an input that takes
// longer than the time allowed.
#include <array>
#include <string>

#include "base/testing/source_directory.h"
#include "explain/diagnose/diagnose.h"
#include "fuzzed_input.h"
#include "record/json_text.h"
#include "record/plausible.h"
#include "record/run_reader.h"
#include "record/step_codec.h"
#include "report/json.h"

namespace fullbore::fuzz {
namespace {

constexpr std::array kMachine = {"cores",        "cores_logical",    "cores_physical",
                                 "memory_bytes", "cgroup_cpu_limit", "cgroup_memory_limit",
                                 "gpus",         "cpu_model"};
constexpr std::array kOfRank = {"torch_threads",    "opencv_threads", "omp_num_threads", "mkl_num_threads",
                                "loader_processes", "world_size",     "compilations",    "hook_ns",
                                "gomp_spincount",   "kmp_blocktime",  "sampled",         "growing",
                                "batch_shape",      "steps_marked"};
constexpr std::array kOfLoader = {
    "num_workers",  "batch_size",     "prefetch_factor", "dataset_samples", "threads",        "map_processes",
    "batches",      "samples",        "fetch_ns",        "collate_ns",      "cpu_ns",         "restarts",
    "run_delay_ns", "worker_span_ns", "worker_idle_ns",  "fast_sample_ns",  "restart_wait_ns"};

std::string Number(Input& input) {
  constexpr std::array kOdd = {"1e15",     "1e300", "-1e300", "nan",  "inf",
                               "0.000001", "-0",    "65536",  "4096", ""};
  const uint8_t choice = input.Byte();
  return choice < 128 ? kOdd[choice % kOdd.size()] : std::to_string(input.Integer());
}

std::string Fact(Input& input) {
  const std::string number = Number(input);
  switch (input.Byte() % 4) {
    case 0:
      return "\"" + number + "\"";
    case 1:
      return "[" + number + ", " + Number(input) + "]";
    default:
      return number;
  }
}

void Change(record::Recording& run, Input& input) {
  record::RankInfo& rank = run.stages.front().ranks.front();
  switch (input.Byte() % 4) {
    case 0:
    case 1:
      run.machine[kMachine[input.Byte() % kMachine.size()]] = Number(input);
      break;
    case 2:
      rank.facts[kOfRank[input.Byte() % kOfRank.size()]] = Fact(input);
      break;
    default: {
      record::Loader& loader = rank.loaders.front();
      nlohmann::json about = record::ParseJson(record::LoaderToJson(loader));
      about[kOfLoader[input.Byte() % kOfLoader.size()]] = input.Integer();
      record::Loader changed = record::LoaderFromJson(about.dump());
      changed.batch_fetch_ns = loader.batch_fetch_ns;
      changed.slowest_sample_ns = loader.slowest_sample_ns;
      changed.wait_ns = loader.wait_ns;
      loader = std::move(changed);
    }
  }
}

record::Recording Golden(const char* name) {
  auto run = record::ReadRun(fullbore::testing::SourceDirectory() + "/tests/golden/" + name + ".fbr");
  FB_CHECK(run.ok() && !run->stages.front().ranks.empty());
  FB_CHECK(!run->stages.front().ranks.front().loaders.empty());
  return std::move(*run);
}

}  // namespace
}  // namespace fullbore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fullbore::fuzz;
  static const std::array goldens = {Golden("resnet-no-workers"), Golden("resnet-one-worker")};
  Input input(data, size);
  fullbore::record::Recording run = goldens[input.Byte() % goldens.size()];
  constexpr int kMaxEdits = 16;
  for (int edit = 0; edit < kMaxEdits && !input.empty(); ++edit) Change(run, input);
  (void)fullbore::record::LeaveOutImplausible(run.machine);
  (void)fullbore::record::LeaveOutImplausible(run.stages.front().ranks.front().facts);
  const auto diagnosis = fullbore::diagnose::Diagnose(run, run.stages.front().name);
  FB_CHECK(nlohmann::json::accept(fullbore::report::ToJsonText(diagnosis)));
  return 0;
}
