#include "measure/probe/nvml/gpm_reader.h"

#include <cmath>

#include "base/clock.h"

namespace fullbore::probe::nvml {

namespace {

constexpr int64_t kMinIntervalNs = 100 * kNsPerMs;  // nvmlGpmMetricsGet's documentation

}  // namespace

Return GpmReader::AskSupport(Library& library, const Gpu& gpu) {
  GpmSupport support{kGpmSupportVersion, 0};
  const Return code = library.gpm_support(gpu.parent != nullptr ? gpu.parent : gpu.device, &support);
  if (code != kSuccess) return code;
  return support.supported != 0 ? kSuccess : kNotSupported;
}

GpmReader::GpmReader(Session& session, const Gpu& gpu, const std::vector<GpmSeries>& series)
    : session_(session) {
  Library& library = session_.library();
  supported_.on = !gpu.away && AskSupport(library, gpu) == kSuccess &&
                  library.gpm_sample_alloc(&before_) == kSuccess &&
                  library.gpm_sample_alloc(&now_) == kSuccess;
  if (!supported_.on) return;
  for (const GpmSeries& s : series) quantities_.push_back({s.id, s.factor, KeyOf(s.metric, gpu.labels), {}});
}

GpmReader::~GpmReader() {
  for (GpmSample sample : {before_, now_}) {
    if (sample != nullptr) session_.library().gpm_sample_free(sample);
  }
}

void GpmReader::Sample(int64_t t_ns, Gpu& gpu, Sink& sink) {
  if (!supported_.on || (before_ns_ != 0 && t_ns - before_ns_ < kMinIntervalNs)) return;
  Library& library = session_.library();
  const Return code = gpu.parent != nullptr
                          ? library.gpm_mig_sample_get(gpu.parent, gpu.gpu_instance_id, now_)
                          : library.gpm_sample_get(gpu.device, now_);
  if (!session_.Succeeded(code, gpu, supported_, sink)) {
    before_ns_ = 0;  // the counters may start over
    return;
  }
  if (before_ns_ != 0) {
    // One metric per call: an unsupported metric would make a call for several fail.
    static thread_local GpmMetricsGet get;
    for (Quantity& quantity : quantities_) {
      if (!quantity.asked.on) continue;
      get.version = kGpmMetricsGetVersion;
      get.count = 1;
      get.sample1 = before_;
      get.sample2 = now_;
      get.metrics[0] = {quantity.id, kSuccess, NAN, nullptr, nullptr, nullptr};
      if (!session_.Succeeded(library.gpm_metrics_get(&get), gpu, quantity.asked, sink)) continue;
      if (!session_.Succeeded(get.metrics[0].result, gpu, quantity.asked, sink)) continue;
      const double value = get.metrics[0].value;
      if (std::isfinite(value) && value >= 0) sink.Read(quantity.key, t_ns, value * quantity.factor);
    }
  }
  std::swap(before_, now_);
  before_ns_ = t_ns;
}

}  // namespace fullbore::probe::nvml
