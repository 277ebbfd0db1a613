// `fullbore explain --section`: tables about traces instead of the verdict.
#pragma once

#include <string>
#include <vector>

#include "cli/results.h"

namespace fullbore::cli {

struct SectionFlags {
  std::vector<std::string> names;
  ResultFile csv{"--csv", kCsvResult}, json{"--json", kJsonResult};
  size_t rows = 0;  // on the terminal
  bool like_hta = false;
};

inline constexpr size_t kSectionRows = 30;

std::string ListOfSections();   // one line each, for --help
std::string NamesOfSections();  // for errors
int ExplainSections(const std::vector<std::string>& traces, const SectionFlags& flags);  // the exit status

}  // namespace fullbore::cli
