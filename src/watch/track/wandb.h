// A run of Weights & Biases, through its own client in the user's Python: a process of its own that is told samples, a
// line of JSON each, and answers each with a line.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/fd.h"
#include "watch/track/tracker.h"

namespace fullbore::watch {

class Wandb : public Tracker {
 public:
  // Empty: the project is as WANDB_PROJECT says.
  explicit Wandb(std::string project) : project_(std::move(project)) {}
  ~Wandb() override;  // ends the process
  Wandb(const Wandb&) = delete;
  Wandb& operator=(const Wandb&) = delete;

  std::string name() const override { return "Weights & Biases"; }
  std::string_view logger() const override { return "wandb"; }
  Attempt Begin(const TrackedRun& run) override;
  Attempt Send(const std::vector<Sample>& samples) override;
  Attempt End(const TrackedRun& run, const Conclusion& conclusion) override;

 private:
  Attempt Start(const TrackedRun& run);
  Attempt Tell(const nlohmann::json& message, int64_t patience_ns);
  void Stop();

  std::string project_;
  pid_t pid_ = -1;
  UniqueFd words_, answers_;  // to and from it
};

// The Python that a command runs in that was started in `directory`, where it names one; else `python3`.
std::string PythonOf(const std::vector<std::string>& command, const std::filesystem::path& directory);

}  // namespace fullbore::watch
