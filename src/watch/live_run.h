// A run that is being recorded, looked at again and again: the last minute, and what a diagnosis says of it and of all
// since the start. Reads the run file and nothing else. One thread; a look reads what the file holds at that moment.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"
#include "record/run_reader.h"
#include "watch/run_index.h"

namespace fullbore::watch {

inline constexpr int64_t kWindowNs = 60'000'000'000;

class LiveRun {
 public:
  explicit LiveRun(std::string path) : path_(std::move(path)) {}

  // Reads the end of the file, and diagnoses the window: a few milliseconds however long the run is, and the copy into
  // TMPDIR that every reader takes of a file that is being recorded (record/snapshot.h), which grows with it by a few
  // megabytes an hour. On an error what was seen before stays.
  Result<void> LookAtWindow();
  // Reads all of the file, and diagnoses the newest stage from its start: what `explain` would say now. Takes time and
  // memory in proportion to the file; only the diagnosis is kept.
  Result<void> LookAtAll();

  const std::string& path() const { return path_; }
  bool seen() const { return !window_.stages.empty(); }  // what follows is empty before
  bool ended() const;                                    // the recorder has closed the file

  // The newest stage, its readings, steps and windows cut to the last minute.
  const record::Recording& window() const { return window_; }
  const diagnose::Diagnosis& of_window() const { return of_window_; }
  // Of the newest stage; without steps until LookAtAll() was called on one that had some.
  const diagnose::Diagnosis& of_all() const { return of_all_; }
  const Judgement& judgement() const { return judgement_; }  // of_all(), as a list shows it
  // Of the lead rank in the newest stage, so far; does not shrink while that stage lasts.
  int64_t steps() const { return steps_; }
  // When the newest stage began, CLOCK_MONOTONIC: not later than the window, and exact after LookAtAll().
  int64_t begin_ns() const { return begin_ns_; }
  // When what window() holds was recorded, CLOCK_MONOTONIC.
  int64_t end_ns() const { return seen() ? window_.stages.back().end_ns : 0; }

 private:
  void KeepExtent(const record::Stage& stage);

  std::string path_;
  record::Recording window_;
  diagnose::Diagnosis of_window_, of_all_;
  Judgement judgement_;
  int64_t stage_id_ = -1, begin_ns_ = 0, steps_ = 0;  // of the newest stage
};

}  // namespace fullbore::watch
