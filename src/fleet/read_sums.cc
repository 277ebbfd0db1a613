#include "fleet/read_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fleet/read_asked.h"

namespace fullbore::fleet {

namespace {

constexpr char kOrigin[] = R"("user", account, partition, device, exemption)";
constexpr char kApart = '\x1f';  // between a run's id and its title

Origin OriginOf(const sql::Row& row) {
  return {row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Int(4)};
}

// Two columns, `name` and `name`_rest: whole seconds, and the nanoseconds beside them. A database's 64 bits hold both.
std::string SumOf(const char* column, const char* name) {
  return fmt::format("CAST(sum({0} / {1}) AS BIGINT) AS {2}, CAST(sum({0} % {1}) AS BIGINT) AS {2}_rest",
                     column, kNsPerSecond, name);
}
WideNs SumAt(const sql::Row& row, int column) {
  return WideNs{row.Int(column)} * kNsPerSecond + row.Int(column + 1);
}

Result<void> ReadRuns(const Selection& selection, sql::Connection& connection, std::vector<RunsSum>& runs) {
  const std::string sql = fmt::format(
      "SELECT {0}, count(*), min(begin_unix_ns), max(begin_unix_ns), {1} FROM newest GROUP BY {0}", kOrigin,
      SumOf("given_ns", "given"));
  return connection.Query(selection.With(sql), selection.values(), [&](const sql::Row& row) {
    runs.push_back({OriginOf(row), static_cast<size_t>(row.Int(5)), SumAt(row, 8), row.Int(6), row.Int(7)});
  });
}

Result<void> ReadParts(const Selection& selection, sql::Connection& connection, std::vector<PartSum>& parts) {
  const std::string sql = fmt::format(
      "SELECT {0}, kind, cause, {1} FROM newest JOIN part ON part.run = newest.key GROUP BY {0}, kind, cause",
      kOrigin, SumOf("device_ns", "device"));
  return connection.Query(selection.With(sql), selection.values(), [&](const sql::Row& row) {
    parts.push_back({OriginOf(row), {KindNamed(row.Text(5)), row.Text(6), SumAt(row, 7)}});
  });
}

Result<void> ReadFixes(const Selection& selection, sql::Connection& connection, std::vector<FixSum>& fixes) {
  constexpr char kEdit[] = R"("user", device, finding, cause, change)";
  constexpr char kSummed[] = R"(s."user", s.device, s.finding, s.cause, s.change, s.runs, s.most, )"
                             "s.low, s.low_rest, s.expected, s.expected_rest, s.high, s.high_rest";
  const sql::Values values = selection.ValuesAnd(std::string(1, kApart));
  const std::string sql = fmt::format(
      ", first AS (SELECT newest.\"user\", newest.device, newest.id, advice.* FROM newest "
      "JOIN advice ON advice.run = newest.key WHERE place = 0 AND expected_ns > 0 AND exemption = -1), "
      "summed AS (SELECT {5}, count(*) AS runs, max(expected_ns) AS most, {0}, {1}, {2} FROM first GROUP BY {5}) "
      "SELECT {3}, min(f.id || ${4} || f.title) FROM summed s JOIN first f ON f.\"user\" = s.\"user\" "
      "AND f.device = s.device AND f.finding = s.finding AND f.cause = s.cause AND f.change = s.change "
      "AND f.expected_ns = s.most GROUP BY {3}",
      SumOf("low_ns", "low"), SumOf("expected_ns", "expected"), SumOf("high_ns", "high"), kSummed,
      values.size(), kEdit);
  return connection.Query(selection.With(sql), values, [&](const sql::Row& row) {
    const std::string both = row.Text(13);
    const size_t apart = std::min(both.find(kApart), both.size());
    fixes.push_back({row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Text(4),
                     static_cast<size_t>(row.Int(5)), SumAt(row, 7), SumAt(row, 9), SumAt(row, 11),
                     row.Int(6), both.substr(0, apart), apart < both.size() ? both.substr(apart + 1) : ""});
  });
}

}  // namespace

Result<void> ReadSums(const Selection& selection, sql::Connection& connection, Sums& sums) {
  auto read = ReadRuns(selection, connection, sums.runs);
  if (read) read = ReadParts(selection, connection, sums.parts);
  if (read) read = ReadFixes(selection, connection, sums.fixes);
  if (read) read = ReadAsked(selection, connection, sums.asked);
  return read;
}

}  // namespace fullbore::fleet
