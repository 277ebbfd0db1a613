// A run of MLflow, through the REST API of its server: the one that the script itself has open, where the hook saw it or
// MLFLOW_RUN_ID names it, else one of our own. What MLflow measures itself under a name has that name here, too.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "watch/track/tracker.h"

namespace fullbore::watch {

class Mlflow : public Tracker {
 public:
  // The server; empty: the script's. Who we are is in MLFLOW_TRACKING_TOKEN, or _USERNAME and _PASSWORD, or the URI.
  explicit Mlflow(std::string uri);

  std::string name() const override;
  std::string_view logger() const override { return "mlflow"; }
  Attempt Begin(const TrackedRun& run) override;
  Attempt Send(const std::vector<Sample>& samples) override;
  Attempt End(const TrackedRun& run, const Conclusion& conclusion) override;

 private:
  Attempt Call(const std::string& method, const nlohmann::json& body, nlohmann::json* answer = nullptr);
  bool FindScriptsRun(const TrackedRun& run);
  Attempt FindExperiment();
  Attempt FindOwnRun(const TrackedRun& run);

  std::string uri_, experiment_, run_id_;
  std::vector<std::string> headers_;
  bool own_ = false;
  const std::atomic<bool> stop_ = false;
};

// What one sample is there, as log-batch takes it.
nlohmann::json MlflowMetrics(const Sample& sample);

}  // namespace fullbore::watch
