// Why the hook cannot be in a Python process. It is loaded through PYTHONPATH, as `sitecustomize`. Some
// options of the interpreter prevent that, also on the first line of a script (#!/usr/bin/python3 -I), and so
// does a script that sets PYTHONPATH itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "record/recording.h"

namespace fullbore::collect {

// `words` is the command line, `environment` has entries of the form "NAME=value". Empty if the process is
// not Python or nothing prevents the hook.
std::string WhyUnseen(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                      const std::string& hook_directory);

// Looks at each process of the command once, and again when it executes another program.
class UnseenPythons {
 public:
  // `root` is "" on a real machine. Without a hook (empty) there is nothing to report.
  UnseenPythons(std::string root, std::string hook_directory)
      : root_(std::move(root)), hook_directory_(std::move(hook_directory)) {}

  void Look(const std::vector<record::Process>& processes);
  // By process. One that has a channel all the same has loaded the hook itself, as `fullbore.record` and notebooks do.
  const std::map<int64_t, std::string>& reasons() const { return reasons_; }

 private:
  const std::string root_, hook_directory_;
  std::map<int64_t, std::string> looked_at_;  // command line by process
  std::map<int64_t, std::string> reasons_;
};

}  // namespace fullbore::collect
