#include "explain/analyze/trace_diff.h"

#include <algorithm>
#include <cmath>

#include "explain/analyze/rank_trace.h"

namespace fullbore::analyze {
namespace {

using Sums = std::map<TraceSum::Key, TraceSum::Sum>;

// Times of the same work vary by this much from run to run: less is not a change.
constexpr double kSameTime = 0.05;

const std::vector<Column> kColumns = {{"what", ""},
                                      {"class", ""},
                                      {"name", ""},
                                      {"change", ""},
                                      {"count_before", "count"},
                                      {"count_after", "count"},
                                      {"before_ns", "ns"},
                                      {"after_ns", "ns"},
                                      {"change_ns", "ns"}};

const char* ChangeOf(double count_before, double count_after, double before_ns, double after_ns) {
  if (count_before == 0) return "added";
  if (count_after == 0) return "removed";
  if (count_before != count_after) return count_after > count_before ? "more" : "fewer";
  if (std::abs(after_ns - before_ns) <= kSameTime * std::max(before_ns, after_ns)) return "same";
  return after_ns > before_ns ? "slower" : "faster";
}

Table Compare(const Sums& before, const Sums& after, int64_t steps_before, int64_t steps_after) {
  const bool by_step = steps_before > 0 && steps_after > 0;
  Table table{kColumns, {}, {}};
  table.Note(by_step
                 ? "counts and times are those of one step (" + std::to_string(steps_before) +
                       " steps before, " + std::to_string(steps_after) + " after)"
                 : std::string("counts and times are those of the whole traces: not both mark their steps"));
  Sums all = before;
  all.insert(after.begin(), after.end());
  const auto side = [&](const Sums& sums, const TraceSum::Key& key, int64_t steps) {
    const auto found = sums.find(key);
    const TraceSum::Sum sum = found == sums.end() ? TraceSum::Sum{} : found->second;
    const double divisor = by_step ? static_cast<double>(steps) : 1;
    return std::pair(static_cast<double>(sum.count) / divisor, static_cast<double>(sum.ns) / divisor);
  };
  for (const auto& [key, ignored] : all) {
    const auto [count_before, before_ns] = side(before, key, steps_before);
    const auto [count_after, after_ns] = side(after, key, steps_after);
    table.Add({std::get<0>(key), std::get<1>(key), std::get<2>(key),
               ChangeOf(count_before, count_after, before_ns, after_ns), count_before, count_after, before_ns,
               after_ns, after_ns - before_ns});
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::abs(std::get<double>(a.back())) > std::abs(std::get<double>(b.back()));
  });
  return table;
}

Sums ByClass(const Sums& sums) {
  Sums classes;
  for (const auto& [key, sum] : sums) {
    if (std::get<0>(key) != "device") continue;
    TraceSum::Sum& one = classes[{std::get<0>(key), std::get<1>(key), ""}];
    one.count += sum.count;
    one.ns += sum.ns;
  }
  return classes;
}

}  // namespace

void TraceSum::Add(const timeline::DeviceTrace& trace) {
  const RankTrace rank(trace);
  for (const timeline::DeviceOp& op : trace.ops) {
    Sum& sum = sums_[{"device", std::string(record::Name(op.lane)), rank.Name(op.name)}];
    ++sum.count;
    sum.ns += op.end_ns - op.begin_ns;
  }
  for (const Operator& one : rank.operators()) {
    Sum& sum = sums_[{"operator", "", rank.Name(one.name)}];
    ++sum.count;
    sum.ns += one.end_ns - one.begin_ns;
  }
  const timeline::FoundSteps& found = rank.steps();
  const int64_t marked = found.marked ? static_cast<int64_t>(found.steps.size()) : 0;
  steps_ = traces_ == 0 || steps_ == marked ? marked : 0;
  ++traces_;
}

const std::vector<Column>& ColumnsOfDiff() { return kColumns; }

Table DiffOf(const TraceSum& before, const TraceSum& after) {
  return Compare(before.sums(), after.sums(), before.steps(), after.steps());
}

Table DiffOfClasses(const TraceSum& before, const TraceSum& after) {
  Table table = Compare(ByClass(before.sums()), ByClass(after.sums()), before.steps(), after.steps());
  // Without the columns that are the same in every row, or empty.
  table.columns.erase(table.columns.begin() + 2);
  table.columns.erase(table.columns.begin());
  for (auto& row : table.rows) {
    row.erase(row.begin() + 2);
    row.erase(row.begin());
  }
  return table;
}

}  // namespace fullbore::analyze
