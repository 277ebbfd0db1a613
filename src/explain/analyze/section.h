// The sections of `fullbore explain --section`: tables about a trace, one file each. The list in section.cc
// is the table of contents; docs/sections.md explains each.
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

extern const Section kTemporalBreakdown, kSteps, kOverlap, kIdleBreakdown, kKernelTypes, kKernels,
    kLaunchSummary, kLaunches, kQueueSummary, kQueueLength, kMemorySummary, kMemoryBandwidth, kOperators,
    kSequences, kRoofline, kRooflineOperators, kRooflineChains, kCollectives, kSyncs, kCounters,
    kCriticalPath, kCriticalPathItems;

const std::vector<const Section*>& AllSections();
const Section* SectionNamed(std::string_view name);  // null if there is none

}  // namespace fullbore::analyze
