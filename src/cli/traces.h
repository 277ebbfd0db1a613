// What the subcommands that read traces share: telling a trace from a run, and reading with a progress line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "explain/ingest/ingest.h"
#include "record/recording.h"

namespace fullbore::cli {

// Whether the words of a command line mean traces rather than a recorded run: several of them, a directory,
// or a file that is not a run file. A word that is not a path is the id of a run.
bool MeansTraces(const std::vector<std::string>& words);

// An error if recorded runs are among what is meant as traces: several run files, a directory of runs.
Result<void> RefuseRuns(const std::vector<std::string>& traces);

// True for what can only be a path ("a/b.json", "trace.json.gz"), whether it exists or not.
bool LooksLikePath(const std::string& word);

// A progress line on standard error while traces are read: only on a terminal, and not for files that are
// read in a moment. Erased in the destructor.
class ReadingLine {
 public:
  ReadingLine();
  ~ReadingLine();
  ReadingLine(const ReadingLine&) = delete;
  ReadingLine& operator=(const ReadingLine&) = delete;

  void Show(const std::string& file, int64_t position, int64_t size);

 private:
  const bool terminal_;
  int64_t begun_ns_;
  bool shown_ = false;
};

// Options that draw the progress line, with HTA's window and rounding if asked for.
ingest::TraceOptions TraceOptionsFor(ReadingLine* line, bool like_hta);

class TracePage;

// `page`, where one is wanted, takes what it shows from each trace.
Result<record::Recording> ReadTraces(const std::vector<std::string>& paths, bool like_hta,
                                     TracePage* page = nullptr);

}  // namespace fullbore::cli
