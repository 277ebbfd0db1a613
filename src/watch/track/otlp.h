// OpenTelemetry's protocol for metrics, as JSON over HTTP: for collectors.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "watch/track/tracker.h"

namespace fullbore::watch {

class Otlp : public Tracker {
 public:
  // The collector's base URL, or that of its metrics; headers are as OTEL_EXPORTER_OTLP_HEADERS says.
  explicit Otlp(std::string url);

  std::string name() const override;
  Attempt Begin(const TrackedRun& run) override;
  Attempt Send(const std::vector<Sample>& samples) override;
  Attempt End(const TrackedRun& run, const Conclusion& conclusion) override;

 private:
  Attempt SendMetrics(nlohmann::ordered_json metrics);

  std::string url_;
  std::vector<std::string> headers_;
  nlohmann::ordered_json resource_;
  const std::atomic<bool> stop_ = false;
};

// "api-key=a%20b,x=y" as lines of a request: "api-key: a b", "x: y".
std::vector<std::string> HeadersIn(const std::string& text);

}  // namespace fullbore::watch
