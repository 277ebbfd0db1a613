// A run file as a recorder writes it, second by second, for tests of what follows it.
#pragma once

#include <string>

#include "base/clock.h"
#include "record/metrics.h"
#include "record/run_writer.h"

namespace fullbore::watch::testing {

class LiveWriter {
 public:
  // Ten steps a second, of which `data_wait` is the share of waiting for data; `cores` adds as many series, read five
  // times a second.
  LiveWriter(const std::string& directory, const std::string& id, double data_wait, int cores = 0)
      : data_wait_(data_wait),
        cores_(cores),
        writer_(record::RunWriter::Open(directory + "/" + id + ".fbr",
                                        {id, "train", {"python", "train.py"}, "/home/u", {{"lr", "3e-4"}}},
                                        kBeginNs, WallNs())
                    .value()) {
    writer_.PutMachineFact("cores", "8");
    record::RankInfo rank;
    rank.samples_known = true;
    rank.facts["torch"] = "\"2.13.0\"";
    record::Loader& loader = rank.loaders.emplace_back();
    loader.feeds_training = true;
    loader.where = "train.py:57";
    loader.batch_size = 8;
    writer_.PutRank(rank);
  }

  LiveWriter& Seconds(int64_t seconds) {
    for (int64_t i = 0; i < seconds; ++i) OneSecond();
    (void)writer_.Flush(now_ns_);
    return *this;
  }
  // The recorder goes on, but no step ends.
  LiveWriter& Pause(int64_t seconds) {
    (void)writer_.Flush(now_ns_ += seconds * kNsPerSecond);
    return *this;
  }
  void End(int exit_status = 0) {
    (void)writer_.Close(now_ns_, record::StageState::kEnded, exit_status, false);
  }

 private:
  static constexpr int64_t kBeginNs = 1000 * kNsPerSecond;
  static constexpr int64_t kStepsPerSecond = 10;

  void OneSecond() {
    record::StepWindow window;
    window.begin_ns = now_ns_;
    window.first_step = step_;
    for (int64_t i = 0; i < kStepsPerSecond; ++i) {
      record::Step step;
      step.index = step_++;
      step.wall_ns = kNsPerSecond / kStepsPerSecond;
      step.end_ns = now_ns_ += step.wall_ns;
      step.samples = 8;
      step.batches = 1;
      const auto waits_ns = static_cast<int64_t>(data_wait_ * static_cast<double>(step.wall_ns));
      step.share_ns[Index(record::Share::kDataWait)] = waits_ns;
      step.share_ns[Index(record::Share::kForward)] = step.wall_ns - waits_ns;
      for (size_t share = 0; share < record::kShareCount; ++share)
        window.share_ns[share] += step.share_ns[share];
      if (step.index < 2048) writer_.AppendStep(0, step);
    }
    window.end_ns = now_ns_;
    window.steps = kStepsPerSecond;
    window.samples = 8 * kStepsPerSecond;
    window.min_wall_ns = window.max_wall_ns = kNsPerSecond / kStepsPerSecond;
    writer_.AppendWindow(0, window);
    writer_.AppendReading(1, record::KeyOf(record::Metric::kCpuUtilization), now_ns_, 0.4);
    writer_.AppendReading(1, record::KeyOf(record::Metric::kGpuUtilization, {{"gpu", "0"}}), now_ns_, 0.47);
    for (int64_t fifth = 4; fifth >= 0; --fifth) {
      for (int core = 0; core < cores_; ++core) {
        const int64_t t_ns = now_ns_ - fifth * kNsPerSecond / 5;
        const auto noise = static_cast<double>((t_ns / 1'000'000 * 7919 + core * 104729) % 100);
        writer_.AppendReading(
            2, record::KeyOf(record::Metric::kCpuCoreUtilization, {{"cpu", std::to_string(core)}}), t_ns,
            noise / 100);
      }
    }
  }

  double data_wait_;
  int cores_;
  int64_t now_ns_ = kBeginNs, step_ = 0;
  record::RunWriter writer_;
};

}  // namespace fullbore::watch::testing
