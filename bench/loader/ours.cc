// Our loader through its C++ interface, as one contender of run.py.
//
//   loader_ours DIR --kind image|image-tar|text-tar --threads N --seconds S [--check FILE]
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string>

#include "fullbore/loader.h"

namespace {

using namespace fullbore::loader;

constexpr int kSide = 224;
constexpr double kWarmUpS = 1;

struct Arguments {
  std::string data, kind = "image", check;
  int threads = 1;
  double seconds = 4;
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

LoaderOptions OptionsFor(const Arguments& arguments) {
  LoaderOptions options;
  options.source.paths = {arguments.kind.ends_with("-tar") ? arguments.data + "/*.tar" : arguments.data};
  options.batch_size = 64;
  options.threads = arguments.threads;
  options.shuffle = arguments.check.empty();
  if (arguments.kind.starts_with("text")) {
    options.source.fields = {"txt", "cls"};
  } else if (arguments.check.empty()) {
    options.transforms = {RandomResizedCrop{.height = kSide, .width = kSide}, RandomHorizontalFlip{},
                          Normalize{}};
  } else {
    options.transforms = {Resize{.height = kSide, .width = kSide}, Normalize{}};
  }
  return options;
}

// The next batch, across the ends of epochs.
Batch NextOf(Loader& loader) {
  for (;;) {
    auto batch = loader.Next();
    if (!batch.ok()) throw std::runtime_error(fullbore::ToString(batch.error()));
    if (batch->has_value()) return std::move(**batch);
  }
}

double PeakMegabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

void Measure(Loader& loader, double begin, double constructed, double seconds) {
  NextOf(loader);
  double first = Now();
  while (Now() - first < kWarmUpS) NextOf(loader);
  int64_t samples = 0;
  const double cpu = CpuSeconds();
  double since = Now(), end = since;
  for (; end - since < seconds; end = Now()) samples += NextOf(loader).rows;
  fmt::print(
      R"({{"samples_per_s": {:.2f}, "cpu_ms_per_sample": {:.4f}, "first_batch_s": {:.4f}, "constructed_to_first_batch_s": {:.4f}, )"
      R"("peak_mb": {:.1f}}})"
      "\n",
      static_cast<double>(samples) / (end - since), 1e3 * (CpuSeconds() - cpu) / static_cast<double>(samples),
      first - begin, first - constructed, PeakMegabytes());
}

void Check(Loader& loader, const std::string& path) {
  Batch batch = NextOf(loader);
  const BatchField& images = batch.fields.front();
  auto bytes =
      static_cast<std::streamsize>(sizeof(float) * 3 * kSide * kSide * static_cast<size_t>(batch.rows));
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(images.data), bytes);
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace

int main(int count, char** values) {
  CLI::App app("our loader as a contender");
  Arguments arguments;
  app.add_option("data", arguments.data)->required();
  app.add_option("--kind", arguments.kind);
  app.add_option("--threads", arguments.threads);
  app.add_option("--seconds", arguments.seconds);
  app.add_option("--check", arguments.check);
  CLI11_PARSE(app, count, values);
  try {
    double begin = Now();
    auto loader = Loader::Open(OptionsFor(arguments));
    if (!loader.ok()) throw std::runtime_error(fullbore::ToString(loader.error()));
    if (arguments.check.empty())
      Measure(*loader, begin, Now(), arguments.seconds);
    else
      Check(*loader, arguments.check);
  } catch (const std::exception& error) {
    fmt::print(stderr, "loader_ours: {}\n", error.what());
    return 1;
  }
  return 0;
}
