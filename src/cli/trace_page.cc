#include "cli/trace_page.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "explain/analyze/host_stacks.h"
#include "explain/analyze/section.h"

namespace fullbore::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRows = 60;  // of each rank
constexpr size_t kRanks = 8;

struct Shown {
  analyze::Table table;
  size_t rows = 0;  // with those that are not shown
};

Json LimitsOf(const record::Roofline& roofline) {
  return {{"device", roofline.device},
          {"flops_per_s", roofline.peak_16bit_flops},
          {"bytes_per_s", roofline.bytes_per_s}};
}

}  // namespace

struct TracePage::Tables {
  std::vector<Shown> shown;  // by section
  Json stacks = Json::array();
  Json limits;
  size_t ranks = 0;
};

TracePage::TracePage() : tables_(std::make_unique<Tables>()) {
  for (const analyze::Section* section : analyze::AllSections())
    tables_->shown.push_back({{section->columns, {}, {}}});
}

TracePage::~TracePage() = default;

void TracePage::Take(const timeline::DeviceTrace& trace) {
  if (++tables_->ranks > kRanks) return;
  const analyze::RankTrace rank(trace);
  for (size_t i = 0; i < tables_->shown.size(); ++i) {
    const analyze::Section& section = *analyze::AllSections()[i];
    Shown& shown = tables_->shown[i];
    analyze::Table table{section.columns, {}, {}};
    section.append(rank, &table);
    shown.rows += table.rows.size();
    table.rows.resize(std::min(table.rows.size(), kRows));
    for (auto& row : table.rows) shown.table.Add(std::move(row));
    for (const std::string& note : table.notes) shown.table.Note(note);
  }
  const analyze::HostStack stacks = analyze::HostStacks(rank);
  if (stacks.ns > 0) tables_->stacks.push_back(analyze::ToJson(stacks));
  if (trace.has_device_activity() && tables_->limits.is_null()) tables_->limits = LimitsOf(rank.roofline());
}

void TracePage::AddTo(Json& page) const {
  page["tables"] = Json::array();
  for (size_t i = 0; i < tables_->shown.size(); ++i) {
    const Shown& shown = tables_->shown[i];
    if (shown.rows == 0 && shown.table.notes.empty()) continue;
    const analyze::Section& section = *analyze::AllSections()[i];
    Json table = {{"name", section.name}, {"summary", section.summary}, {"all", shown.rows}};
    table.update(analyze::ToJson(shown.table));
    page["tables"].push_back(std::move(table));
  }
  page["ranks_left_out"] = tables_->ranks - std::min(tables_->ranks, kRanks);
  page["host_stacks"] = tables_->stacks;
  page["roof"] = tables_->limits;
}

}  // namespace fullbore::cli
