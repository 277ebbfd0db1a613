// A window of a trace as Chrome JSON, for ui.perfetto.dev and chrome://tracing, with what Fullbore says about
// it on tracks of its own:
//
//   fullbore          findings: each a slice where its evidence lies in the window, else over all of it
//   fullbore, rank 0  the steps (with their shares), where the time goes (one slice per share), the critical
//                     path, and the shares of each step as counters
//   rank 0, device    one track per stream: kernels and copies, with arrows from the host's calls
//   rank 0, host      one track per thread: operators and calls
//   rank 0, replayed  what the replay makes of some changes: steps, streams and threads
//
// Events that cross an edge of the window are cut there; their arguments give the whole duration.
#pragma once

#include <cstdint>
#include <string>

#include "explain/diagnose/diagnosis.h"
#include "explain/replay/simulate.h"
#include "record/recording.h"
#include "timeline/device/trace.h"

namespace fullbore::exporting {

struct Window {  // on the recording's clock
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t origin_ns = 0;  // the beginning of the recording: times in the file count from here
};

class PerfettoFile {
 public:
  explicit PerfettoFile(const Window& window) : window_(window) {}

  void AddFindings(const diagnose::Diagnosis& diagnosis);

  // `shift_ns` maps the trace's times to the recording's clock. `numbers` are the trace's own step numbers;
  // empty: as the recording counts them.
  void AddRank(const timeline::DeviceTrace& trace, const record::RankInfo& info, int64_t shift_ns,
               const std::vector<int64_t>& numbers);

  // The steps of a changed graph of the rank, run beside those of the ranks that it meets, which come after it
  // (explain/replay), named by what was changed. Step `step` begins where it began in the recording; the graph contains
  // it, and `info` has it in full.
  void AddReplay(const timeline::DeviceTrace& trace, const record::RankInfo& info,
                 const std::vector<int64_t>& numbers, replay::Ranks ranks, int64_t step,
                 const std::string& changes);

  int64_t events() const { return events_; }
  std::string Json() const;

 private:
  class RankTracks;

  static std::string StepName(const record::Step& step, const std::vector<int64_t>& numbers);
  int NewTrack(int pid, const std::string& process, const std::string& thread);  // its thread id
  void Slice(int pid, int tid, const std::string& name, int64_t begin_ns, int64_t end_ns,
             const std::string& args = "");
  void Event(const std::string& json);
  bool Touches(int64_t begin_ns, int64_t end_ns) const {
    return begin_ns < window_.end_ns && end_ns > window_.begin_ns;
  }
  std::string Micros(int64_t ns) const;  // since the origin

  const Window window_;
  std::string text_;
  int64_t events_ = 0;
  int tracks_ = 0;
};

// `comment` stands in the header, where it is read without unpacking.
std::string Gzip(const std::string& text, const std::string& comment);

}  // namespace fullbore::exporting
