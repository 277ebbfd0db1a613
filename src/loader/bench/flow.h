// What `fullbore loader bench` measured of the data alone, and what follows: which part is the bottleneck,
// and how many threads a wanted rate takes. Arithmetic only: no clock, no files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fullbore::loader::bench {

// The thread time that a sample costs in one stage.
struct StageCost {
  std::string name;  // as StageStats: "read", "decode", "transform", "collate"
  double us_per_sample = 0;
};

// The whole way from storage to finished batches, at one number of threads.
struct Point {
  int threads = 0;
  double samples_per_s = 0;
  std::vector<StageCost> stages;
};

// Reading alone.
struct Reading {
  int readers = 0;
  bool cold = false;  // from the device or the server, not from memory
  double samples_per_s = 0;
  double bytes_per_s = 0;
};

// The same data with PyTorch's DataLoader.
struct TorchPoint {
  int workers = 0;
  double samples_per_s = 0;
};

struct Flow {
  std::string path;
  bool remote = false;  // over HTTP or S3
  uint64_t samples = 0;
  uint64_t used_samples = 0;  // how many were read repeatedly; all, if they fit in memory
  double bytes_per_sample = 0;
  std::string row;  // "3x224x224 float32"
  int64_t batch_size = 0;
  int cores = 1;  // that this process may use
  std::vector<Reading> readings;
  std::vector<Point> points;  // by number of threads, ascending
  std::vector<TorchPoint> torch;
  std::string torch_versions;      // "torch 2.13.0, Pillow 13.0.0"
  std::vector<std::string> notes;  // what could not be measured, and why
  bool interrupted = false;
};

enum class Pipe { kStorage, kRead, kDecode, kTransform, kCollate };
const char* NameOf(Pipe pipe);  // "storage", "read", ...

struct Verdict {
  Pipe pipe = Pipe::kDecode;
  std::string text;       // one sentence with the figures
  std::string next_step;  // what to change
};

// Empty if nothing was measured.
std::optional<Verdict> Judge(const Flow& flow);

// The rate with `threads`: as measured, interpolated between two measurements, or extrapolated beyond the
// last one up to the number of cores. More threads than cores gain nothing.
double RateAt(const Flow& flow, int threads);

struct Demand {
  double samples_per_s = 0;
  std::optional<int> threads;            // absent: more than the cores can give
  double at_most = 0;                    // what all cores can give
  std::optional<double> machines_cores;  // how many cores of this kind it would take, if more than available
  std::string text;
};
Demand ThreadsFor(const Flow& flow, double samples_per_s);

// The best of the cold readings; empty if there was none.
std::optional<Reading> BestColdReading(const Flow& flow);

}  // namespace fullbore::loader::bench
