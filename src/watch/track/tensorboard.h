// Event files for TensorBoard, in a directory of the run's own below the one that TensorBoard shows: it reads on only in
// the newest file of a directory, so that another's would not be read any more.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "watch/track/tracker.h"

namespace fullbore::watch {

class TensorBoard : public Tracker {
 public:
  explicit TensorBoard(std::string directory) : directory_(std::move(directory)) {}

  std::string name() const override { return "TensorBoard's directory " + directory_; }
  std::string_view logger() const override { return "tensorboard"; }
  // The file has the same name each time: who exports a run again finds it once.
  Attempt Begin(const TrackedRun& run) override;
  Attempt Send(const std::vector<Sample>& samples) override;
  Attempt End(const TrackedRun& run, const Conclusion& conclusion) override;

 private:
  Attempt Append(const std::string& records);

  std::string directory_;
  UniqueFd file_;
  off_t size_ = 0;  // of whole records
  int64_t last_step_ = 0;
};

// A record of a TFRecord file: length, its checksum, the event and its checksum.
std::string EventRecord(const std::string& event);

}  // namespace fullbore::watch
