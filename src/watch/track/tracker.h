// Where a run's figures can go: one face of the exporter each. A tracker keeps nothing that it could not send: what is to
// be sent stays in the run file until it was taken (feed.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "watch/notify/delivery.h"
#include "watch/run_index.h"
#include "watch/track/sample.h"

namespace fullbore::watch {

// What is said of the run itself. Whatever was typed has its secrets masked already, by the recorder.
struct TrackedRun {
  std::string id, stage, host, command;
  std::vector<std::string> words;  // of the command
  std::string directory;           // that it was started in
  std::map<std::string, std::string> tags;
  std::map<std::string, std::string> facts;  // of the first rank, JSON texts
  int64_t wall_begin_ns = 0, wall_end_ns = 0;
  // Recorded here and now. Of a file that somebody may have sent, no program is started that it names, in no directory
  // that it names, and no server that it names is given the user's password.
  bool is_live = false;

  static TrackedRun Of(const record::Recording& recording);
};

// The end of a run.
struct Conclusion {
  Judgement judgement;
  bool failed = false;
};

class Tracker {
 public:
  virtual ~Tracker() = default;

  // "MLflow at http://***@host:5000", for messages.
  virtual std::string name() const = 0;
  // What the hook calls it where the script itself logs there; empty where no script does.
  virtual std::string_view logger() const { return ""; }
  // Before anything is sent; called again until it was delivered.
  virtual Attempt Begin(const TrackedRun& run) = 0;
  // At most kMostSamples at once, the oldest first. The same may be sent again if it failed. Delivered with a problem:
  // parts of it were refused, and would be again.
  static constexpr size_t kMostSamples = 20;
  virtual Attempt Send(const std::vector<Sample>& samples) = 0;
  // The last call.
  virtual Attempt End(const TrackedRun& run, const Conclusion& conclusion) = 0;
};

// Which tracker, as `--log` and `--to` name it: "tensorboard:DIR", "mlflow[:URI]", "wandb[:PROJECT]", "otlp[:URL]".
struct TrackerName {
  enum class Kind { kTensorBoard, kMlflow, kWandb, kOtlp };
  Kind kind = Kind::kTensorBoard;
  std::string place;  // empty: as the environment says

  bool operator==(const TrackerName&) const = default;
};

bool NamesATracker(const std::string& text);
// An error if the place is missing, or one that cannot be written to.
Result<TrackerName> TrackerNamed(const std::string& text);
std::unique_ptr<Tracker> MakeTracker(const TrackerName& name);

// Value of a variable of the environment; empty without one.
std::string Variable(const char* name);

}  // namespace fullbore::watch
