// The sections of `fullbore explain --section`: tables about a trace. sections.inc is the table of contents.
#pragma once

#include <string_view>
#include <vector>

#include "explain/analyze/rank_trace.h"
#include "explain/analyze/table.h"

namespace fullbore::analyze {

struct Section {
  const char* name;     // "idle-breakdown"
  const char* summary;  // one line for --help
  std::vector<Column> columns;
  void (*append)(const RankTrace& rank, Table* table);  // the rows of one rank, and notes
};

#define SECTION(section) extern const Section section;
#include "explain/analyze/sections.inc"
#undef SECTION

const std::vector<const Section*>& AllSections();
const Section* SectionNamed(std::string_view name);  // null if there is none

}  // namespace fullbore::analyze
