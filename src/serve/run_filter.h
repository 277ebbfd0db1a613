// What people type to find runs: "state:running finding:input-bound tag:lr=3e-4 resnet -tag:draft". Words must all
// match; a minus before one turns it around; a word without a colon is searched for in name, command, tags and verdict.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "watch/run_index.h"

namespace fullbore::serve {

std::string_view Name(watch::RunState state);  // "running", "cut off", "ended"
std::string CommandOf(const watch::KnownRun& run);

class RunFilter {
 public:
  // An error names the word that means nothing.
  static Result<RunFilter> Parse(const std::string& text);
  bool Matches(const std::string& name, const watch::KnownRun& run) const;

 private:
  struct Word {
    std::string field, value;  // in lower case; field "" is any
    bool not_this = false;
  };
  static bool Holds(const Word& word, const std::string& name, const watch::KnownRun& run);

  std::vector<Word> words_;
};

}  // namespace fullbore::serve
