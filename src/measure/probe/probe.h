// A probe reads one source of what the machine is doing: /proc/stat, a cgroup, NVML. One class per source;
// the table in registry.cc lists them, and a new probe is one class and one line there.
//
// A probe is owned and called by the recorder thread alone. It takes the machine's root directory, so that
// tests can feed it canned files. A reading that is unavailable is left out, never written as 0; a permanent
// loss is reported once as a message.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "record/metrics.h"
#include "record/recording.h"

namespace fullbore::probe {

using record::KeyOf;
using record::Metric;
using record::Rate;

// Where a probe puts its readings. Implemented by the recorder (into the run file) and by tests.
class Sink {
 public:
  virtual ~Sink() = default;
  // `key.resolution` is taken from the first call for a key. Cheap: a hash look-up and an append.
  virtual void Read(const record::SeriesKey& key, int64_t t_ns, double value) = 0;
  virtual void Say(record::Severity severity, std::string_view source, std::string_view text) = 0;
  virtual void SetMachineFact(std::string_view key, std::string_view value) = 0;
};

struct Machine {
  std::string root;         // "" on a real machine; a directory holding proc/, sys/, dev/ in tests
  int64_t command_pid = 0;  // the command being recorded, 0 for none
  std::string mark;         // value of FULLBORE_RUN in the environment of all its processes, "" for none
  bool keep_command_lines =
      true;  // of its processes, with their secrets masked; else the kernel's short names
};

class Probe {
 public:
  virtual ~Probe() = default;
  virtual std::string_view name() const = 0;
  virtual Rate rate() const = 0;
  // One round of readings at t_ns (CLOCK_MONOTONIC). Rates cover the time since the previous round; the
  // first round yields only levels.
  virtual void Sample(int64_t t_ns, Sink& sink) = 0;
};

}  // namespace fullbore::probe
