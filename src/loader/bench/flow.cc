#include "loader/bench/flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace fullbore::loader::bench {
namespace {

constexpr std::array kPipes = {Pipe::kRead, Pipe::kDecode, Pipe::kTransform, Pipe::kCollate};

const Point& Fastest(const Flow& flow) {
  return *std::max_element(flow.points.begin(), flow.points.end(),
                           [](const Point& a, const Point& b) { return a.samples_per_s < b.samples_per_s; });
}

double CostOf(const Point& point, Pipe pipe) {
  for (const StageCost& stage : point.stages) {
    if (stage.name == NameOf(pipe)) return stage.us_per_sample;
  }
  return 0;
}

// The rate that one more thread adds beyond the largest measured number of threads.
double LastSlope(const std::vector<Point>& points) {
  const Point& last = points.back();
  const double average = last.samples_per_s / last.threads;
  if (points.size() < 2) return average;
  const Point& before = points[points.size() - 2];
  const double slope = (last.samples_per_s - before.samples_per_s) / (last.threads - before.threads);
  return std::clamp(slope, 0.0, average);
}

std::string NextStep(Pipe pipe, bool remote) {
  switch (pipe) {
    case Pipe::kStorage:
      return "keep the data where it can be read faster: a local disk, more of it in memory "
             "(memory_cache_bytes), or shards read in sequence (fullbore loader pack, shuffle_shards)";
    case Pipe::kRead:
      if (remote) {
        return "the data is far away: more reads at once (threads) overlap the waits, a cache on a local "
               "disk saves them from the second epoch on";
      }
      return "pack the small files into shards (fullbore loader pack): opening them costs more than decoding";
    case Pipe::kDecode:
      return "more cores, or less to decode: store the images no larger than the training looks at them";
    case Pipe::kTransform:
      return "fewer or cheaper transforms (ColorJitter and rotations cost most), or more cores";
    case Pipe::kCollate:
      return "smaller rows: dtype uint8 or float16, with normalisation on the device";
  }
  return "";
}

Verdict StorageBinds(const Reading& cold, const Point& fastest) {
  return {Pipe::kStorage,
          fmt::format("storage binds while the data is not in memory: {} samples/s ({}/s) with {} reader{}, "
                      "where {} thread{} could decode {}",
                      FormatCount(std::round(cold.samples_per_s)), FormatBytes(cold.bytes_per_s),
                      cold.readers, cold.readers == 1 ? "" : "s", fastest.threads,
                      fastest.threads == 1 ? "" : "s", FormatCount(std::round(fastest.samples_per_s))),
          NextStep(Pipe::kStorage, false)};
}

}  // namespace

const char* NameOf(Pipe pipe) {
  switch (pipe) {
    case Pipe::kStorage:
      return "storage";
    case Pipe::kRead:
      return "read";
    case Pipe::kDecode:
      return "decode";
    case Pipe::kTransform:
      return "transform";
    case Pipe::kCollate:
      return "collate";
  }
  return "";
}

std::optional<Reading> BestColdReading(const Flow& flow) {
  std::optional<Reading> best;
  for (const Reading& reading : flow.readings) {
    if (reading.cold && (!best || reading.samples_per_s > best->samples_per_s)) best = reading;
  }
  return best;
}

std::optional<Verdict> Judge(const Flow& flow) {
  if (flow.points.empty()) return std::nullopt;
  const Point& fastest = Fastest(flow);
  const auto cold = BestColdReading(flow);
  if (cold && cold->samples_per_s < fastest.samples_per_s) return StorageBinds(*cold, fastest);
  double total = 0;
  for (const Pipe pipe : kPipes) total += CostOf(fastest, pipe);
  if (total <= 0) return std::nullopt;
  const Pipe binding = *std::max_element(
      kPipes.begin(), kPipes.end(), [&](Pipe a, Pipe b) { return CostOf(fastest, a) < CostOf(fastest, b); });
  const double cost = CostOf(fastest, binding);
  return Verdict{
      binding,
      fmt::format("{} binds: {:.0f} of the {:.0f} us of thread time that a sample costs ({}), which gives "
                  "{} samples/s with {} thread{}",
                  NameOf(binding), cost, total, FormatPercent(cost / total),
                  FormatCount(std::round(fastest.samples_per_s)), fastest.threads,
                  fastest.threads == 1 ? "" : "s"),
      NextStep(binding, flow.remote)};
}

double RateAt(const Flow& flow, int threads) {
  if (flow.points.empty() || threads <= 0) return 0;
  const std::vector<Point>& points = flow.points;
  const auto above = std::find_if(points.begin(), points.end(),
                                  [&](const Point& point) { return point.threads >= threads; });
  if (above == points.end()) {
    const Point& last = points.back();
    const int more = std::max(0, std::min(threads, flow.cores) - last.threads);
    return last.samples_per_s + more * LastSlope(points);
  }
  const Point origin;
  const Point& below = above == points.begin() ? origin : *std::prev(above);
  const double part = static_cast<double>(threads - below.threads) / (above->threads - below.threads);
  return below.samples_per_s + part * (above->samples_per_s - below.samples_per_s);
}

Demand ThreadsFor(const Flow& flow, double samples_per_s) {
  Demand demand;
  demand.samples_per_s = samples_per_s;
  const int last = std::max(flow.cores, flow.points.empty() ? 0 : flow.points.back().threads);
  for (int threads = 1; threads <= last; ++threads) {
    const double rate = RateAt(flow, threads);
    demand.at_most = std::max(demand.at_most, rate);
    if (!demand.threads && rate >= samples_per_s) demand.threads = threads;
  }
  const std::string wanted = FormatCount(std::round(samples_per_s));
  if (demand.threads) {
    const bool measured = *demand.threads <= flow.points.back().threads;
    demand.text =
        fmt::format("{} samples/s take {} thread{}{}", wanted, *demand.threads,
                    *demand.threads == 1 ? "" : "s", measured ? "" : ", extrapolated from what was measured");
  } else if (!flow.points.empty()) {
    const double slope = LastSlope(flow.points);
    demand.text =
        fmt::format("{} samples/s are more than the {} core{} here can give: at most {}", wanted, flow.cores,
                    flow.cores == 1 ? "" : "s", FormatCount(std::round(demand.at_most)));
    if (slope > 0) {
      demand.machines_cores = flow.cores + std::ceil((samples_per_s - demand.at_most) / slope);
      demand.text += fmt::format("; about {:.0f} cores of this kind would", *demand.machines_cores);
    }
  }
  const auto cold = BestColdReading(flow);
  if (cold && cold->samples_per_s < samples_per_s) {
    demand.text += fmt::format("; storage gives {} while the data is not in memory",
                               FormatCount(std::round(cold->samples_per_s)));
  }
  return demand;
}

}  // namespace fullbore::loader::bench
