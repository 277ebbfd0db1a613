#include "timeline/device/stretches.h"

#include <algorithm>
#include <utility>

namespace fullbore::timeline {

using record::RankInfo;

namespace {

void Add(const std::optional<int64_t>& more, std::optional<int64_t>* sum) {
  if (more) *sum = sum->value_or(0) + *more;
}

// Adds each row to the one of the same key; rows are in order of what `weight` says of them.
template <typename Row, typename Same, typename Sum, typename Weight>
void AddRows(std::vector<Row> more, std::vector<Row>* rows, Same same, Sum sum, Weight weight) {
  for (Row& row : more) {
    const auto known =
        std::find_if(rows->begin(), rows->end(), [&](const Row& other) { return same(row, other); });
    if (known == rows->end())
      rows->push_back(std::move(row));
    else
      sum(row, &*known);
  }
  std::stable_sort(rows->begin(), rows->end(),
                   [&](const Row& a, const Row& b) { return weight(a) > weight(b); });
}

void AddKernel(const record::KernelStats& more, record::KernelStats* sum) {
  sum->count += more.count;
  sum->sum_ns += more.sum_ns;
  sum->min_ns = std::min(sum->min_ns, more.min_ns);
  sum->max_ns = std::max(sum->max_ns, more.max_ns);
  sum->duration_ns.Merge(more.duration_ns);
}

void AddCopy(const record::CopyStats& more, record::CopyStats* sum) {
  sum->count += more.count;
  Add(more.bytes, &sum->bytes);
  sum->sum_ns += more.sum_ns;
  sum->exposed_ns += more.exposed_ns;
  sum->duration_ns.Merge(more.duration_ns);
}

void AddSync(const record::SyncStats& more, record::SyncStats* sum) {
  sum->count += more.count;
  sum->blocked_ns += more.blocked_ns;
  sum->idle_ns += more.idle_ns;
}

void AddCollective(const record::CollectiveStats& more, record::CollectiveStats* sum) {
  sum->count += more.count;
  Add(more.bytes, &sum->bytes);
  sum->bytes_ns += more.bytes_ns;
  sum->sum_ns += more.sum_ns;
  sum->exposed_ns += more.exposed_ns;
  sum->duration_ns.Merge(more.duration_ns);
}

void AddLaunches(const std::optional<record::LaunchStats>& more, std::optional<record::LaunchStats>* sum) {
  if (!more) return;
  if (!*sum) *sum = record::LaunchStats{};
  (*sum)->count += more->count;
  (*sum)->late += more->late;
  (*sum)->short_kernels += more->short_kernels;
  (*sum)->call_ns.Merge(more->call_ns);
  (*sum)->delay_ns.Merge(more->delay_ns);
}

void AddTables(record::DeviceTables more, record::DeviceTables* sum) {
  AddRows(
      std::move(more.kernels), &sum->kernels, [](auto& a, auto& b) { return a.name == b.name; }, AddKernel,
      [](auto& row) { return row.sum_ns; });
  AddRows(
      std::move(more.copies), &sum->copies, [](auto& a, auto& b) { return a.kind == b.kind; }, AddCopy,
      [](auto&) { return 0; });
  AddRows(
      std::move(more.syncs), &sum->syncs,
      [](auto& a, auto& b) { return a.call == b.call && a.where == b.where; }, AddSync,
      [](auto& row) { return row.idle_ns; });
  AddRows(
      std::move(more.collectives), &sum->collectives,
      [](auto& a, auto& b) { return a.kind == b.kind && a.group == b.group; }, AddCollective,
      [](auto& row) { return row.sum_ns; });
  AddLaunches(more.launches, &sum->launches);
}

void AddNoticed(const record::Noticed& more, record::Noticed* sum) {
  if (!sum->breaks_off_at) sum->breaks_off_at = more.breaks_off_at;
  if (!sum->clock_ahead_ns) {
    sum->clock_ahead_ns = more.clock_ahead_ns;
    sum->clock_corrected = more.clock_corrected;
  }
  for (const auto member :
       {&record::Noticed::left_out, &record::Noticed::cut, &record::Noticed::launches,
        &record::Noticed::ran_nothing, &record::Noticed::captures, &record::Noticed::cold_calls,
        &record::Noticed::cold_ns, &record::Noticed::span_ns, &record::Noticed::stepped_ns,
        &record::Noticed::empty_steps, &record::Noticed::bare_steps, &record::Noticed::together_ns,
        &record::Noticed::stretches, &record::Noticed::computed_ns, &record::Noticed::recomputed_ns})
    sum->*member += more.*member;
  sum->bare.insert(sum->bare.end(), more.bare.begin(), more.bare.end());
  sum->devices = std::max(sum->devices, more.devices);
  for (size_t i = 0; i < std::min(sum->each_busy_ns.size(), more.each_busy_ns.size()); ++i)
    sum->each_busy_ns[i] += more.each_busy_ns[i];
}

}  // namespace

void Append(RankInfo next, RankInfo* info) {
  const int64_t first = info->steps.empty() ? 0 : info->steps.back().index + 1;
  for (record::Step& step : next.steps) {
    step.index += first;
    info->steps.push_back(step);
  }
  for (record::StepWindow& window : next.windows) {
    window.first_step += first;
    info->windows.push_back(window);
  }
  for (const auto member : {&RankInfo::span_ns, &RankInfo::busy_ns, &RankInfo::compute_ns, &RankInfo::comm_ns,
                            &RankInfo::comm_exposed_ns, &RankInfo::comm_overlapped_ns, &RankInfo::copy_ns,
                            &RankInfo::copy_exposed_ns, &RankInfo::kernels})
    Add(next.*member, &(info->*member));
  for (const auto& [kernel_class, ns] : next.kernel_class_ns) info->kernel_class_ns[kernel_class] += ns;
  if (next.tables && info->tables)
    AddTables(std::move(*next.tables), &*info->tables);
  else if (next.tables)
    info->tables = std::move(next.tables);
  info->device_activity = info->device_activity || next.device_activity;
  AddNoticed(next.noticed, &info->noticed);
}

}  // namespace fullbore::timeline
