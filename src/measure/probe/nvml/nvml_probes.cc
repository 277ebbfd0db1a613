#include "measure/probe/nvml/nvml_probes.h"

#include <fmt/format.h>

#include <algorithm>

#include "measure/probe/nvml/slow_readings.h"

namespace fullbore::probe::nvml {

namespace {

constexpr double kPercent = 0.01;
constexpr int kMaxXidsPerRound = 16;  // an error storm must not hold up the recorder

// What the most common Xids mean, from NVIDIA's "XID Errors" document (docs.nvidia.com/deploy/xid-errors).
const char* XidMeaning(uint64_t xid) {
  switch (xid) {
    case 13:
      return ": a kernel failed (graphics engine exception), usually a bug in the program";
    case 31:
      return ": a kernel accessed an invalid address (page fault)";
    case 43:
      return ": a kernel ran into an error and was stopped";
    case 48:
      return ": uncorrectable memory error (double-bit ECC)";
    case 63:
    case 64:
      return ": a faulty memory row is taken out of use (row remapping)";
    case 74:
      return ": NVLink error";
    case 79:
      return ": the GPU has fallen off the bus";
    case 94:
    case 95:
      return ": uncorrectable memory error, program stopped";
    default:
      return "";
  }
}

const std::vector<GpmSeries>& FastGpmSeries() {
  static const std::vector<GpmSeries> series = {{kGpmSmUtil, Metric::kGpuSmActive, kPercent},
                                                {kGpmSmOccupancy, Metric::kGpuSmOccupancy, kPercent},
                                                {kGpmAnyTensorUtil, Metric::kGpuTensorActive, kPercent},
                                                {kGpmDramBwUtil, Metric::kGpuDramActive, kPercent}};
  return series;
}

}  // namespace

void FastProbe::Sample(int64_t t_ns, Sink& sink) {
  if (!session_->Start(sink)) return;
  std::vector<Gpu>& gpus = session_->gpus();
  for (size_t i = readings_.size(); i < gpus.size(); ++i) {
    readings_.push_back({std::make_unique<GpmReader>(*session_, gpus[i], FastGpmSeries()),
                         {},
                         KeyOf(Metric::kGpuUtilization, gpus[i].labels),
                         KeyOf(Metric::kGpuMemoryUtilization, gpus[i].labels)});
  }
  for (size_t i = 0; i < gpus.size(); ++i) {
    Gpu& gpu = gpus[i];
    Readings& readings = readings_[i];
    if (!session_->Reachable(gpu, t_ns, sink)) continue;
    if (Utilization now;
        readings.utilization.on && session_->Succeeded(session_->library().utilization(gpu.device, &now), gpu,
                                                       readings.utilization, sink)) {
      if (now.gpu <= 100) sink.Read(readings.gpu_key, t_ns, now.gpu * kPercent);
      if (now.memory <= 100) sink.Read(readings.memory_key, t_ns, now.memory * kPercent);
    }
    if (!gpu.away) readings.gpm->Sample(t_ns, gpu, sink);
  }
}

SlowProbe::SlowProbe(std::shared_ptr<Session> session, std::function<bool(int64_t pid)> is_ours)
    : session_(std::move(session)), is_ours_(std::move(is_ours)) {}

SlowProbe::~SlowProbe() {
  if (events_ != nullptr) session_->library().event_set_free(events_);
}

void SlowProbe::Sample(int64_t t_ns, Sink& sink) {
  if (!session_->Start(sink)) return;
  std::vector<Gpu>& gpus = session_->gpus();
  if (readings_.empty() && !gpus.empty()) WatchXids();
  for (size_t i = readings_.size(); i < gpus.size(); ++i) {
    readings_.push_back(std::make_unique<Readings>(*session_, gpus[i], is_ours_));
  }
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (session_->Reachable(gpus[i], t_ns, sink)) readings_[i]->Sample(t_ns, gpus[i], sink);
  }
  ReadXids(t_ns, sink);
}

void SlowProbe::WatchXids() {
  Library& library = session_->library();
  if (library.event_set_create(&events_) != kSuccess) {
    events_ = nullptr;
    return;
  }
  bool any = false;
  for (const Gpu& gpu : session_->gpus()) {
    if (gpu.parent == nullptr && !gpu.away)
      any |= library.register_events(gpu.device, kEventXid, events_) == kSuccess;
  }
  if (any) return;
  library.event_set_free(events_);
  events_ = nullptr;
}

void SlowProbe::ReadXids(int64_t t_ns, Sink& sink) {
  if (events_ == nullptr) return;
  for (int i = 0; i < kMaxXidsPerRound; ++i) {
    EventData event;
    if (session_->library().event_wait(events_, &event, 0) != kSuccess) return;
    if (event.type != kEventXid) continue;
    const auto gpu = std::ranges::find(session_->gpus(), event.device, &Gpu::device);
    const std::string title = gpu == session_->gpus().end() ? "a GPU" : gpu->title;
    sink.Say(record::Severity::kError, "nvml",
             fmt::format("{} reported Xid {}{}", title, event.data, XidMeaning(event.data)));
    if (gpu != session_->gpus().end()) {
      sink.Read(KeyOf(Metric::kGpuXid, gpu->labels), t_ns, static_cast<double>(event.data));
    }
  }
}

}  // namespace fullbore::probe::nvml
