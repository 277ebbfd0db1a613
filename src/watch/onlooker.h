// Looks at a run from beside it while it is being recorded, and says when there is something to say.
//
// A look is `fullbore explain --json` in a process of its own, at low priority: what it needs of memory is given back,
// and a failure of it is nobody else's. The recorder's thread only starts it and, later, reads what it left.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "watch/announcer.h"

namespace fullbore::watch {

class Onlooker {
 public:
  // `explainer` is the program that is run as `explainer explain --json - RUN_FILE`; there are `pause_ns` between the
  // first looks, and more later.
  Onlooker(std::string explainer, int64_t pause_ns);
  ~Onlooker();  // ends a look in progress
  Onlooker(const Onlooker&) = delete;
  Onlooker& operator=(const Onlooker&) = delete;

  // Starts a look where one is due, and takes what a finished one found. Never blocks and never throws; an explainer
  // that fails or hangs is a look that found nothing.
  std::optional<std::string> Tick(const std::string& run_file, int64_t now_ns);

 private:
  void Start(const std::string& run_file, int64_t now_ns);
  std::optional<std::string> Finish(int64_t now_ns);

  std::string explainer_;
  int64_t pause_ns_;
  int64_t first_ns_ = 0, next_ns_ = 0, started_ns_ = 0;
  pid_t pid_ = -1;  // of the look in progress
  UniqueFd said_;   // its output
  Announcer announcer_;
};

}  // namespace fullbore::watch
