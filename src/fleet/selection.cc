#include "fleet/selection.h"

#include <fmt/format.h>

namespace fullbore::fleet {

namespace {

// The newest row of each run that began within $1 and $2, of user $3. A run is known by its id and when it began: a
// folder that is copied or moved holds the same runs; and by its id and path: one that goes on on several machines may
// have begun earlier than was known. The row that saw most of it is the newest, so that an old copy which somebody
// touches, or puts back, is not; and nobody's row takes the place of another user's.
constexpr char kNewest[] =
    "WITH newest AS (SELECT r.*, {exempt} AS exemption FROM run r "
    "WHERE r.begin_unix_ns >= $1 AND r.begin_unix_ns < $2 AND ($3 = '' OR r.\"user\" = $3) "
    "AND NOT EXISTS (SELECT 1 FROM run n WHERE n.id = r.id AND n.\"user\" = r.\"user\" "
    "AND (n.path = r.path OR n.begin_unix_ns = r.begin_unix_ns) "
    "AND (n.end_unix_ns, n.changed_ns, n.bytes, n.key) > (r.end_unix_ns, r.changed_ns, r.bytes, r.key))) ";

std::string Within(const std::string& text) {
  std::string pattern = "%";
  for (const char c : text) {
    if (c == '%' || c == '_' || c == '!') pattern += '!';
    pattern += c;
  }
  return pattern + "%";
}

}  // namespace

Selection::Selection(const Range& range, const std::vector<Exemption>& exemptions)
    : values_{range.since_unix_ns, range.until_unix_ns, range.user} {
  std::string cases;
  for (size_t i = 0; i < exemptions.size(); ++i)
    cases += fmt::format(" WHEN {} THEN {}", ConditionOf(exemptions[i]), i);
  newest_ = fmt::format(fmt::runtime(kNewest),
                        fmt::arg("exempt", cases.empty() ? "-1" : "CASE" + cases + " ELSE -1 END"));
}

sql::Values Selection::ValuesAnd(sql::Value value) const {
  sql::Values all = values_;
  all.push_back(std::move(value));
  return all;
}

std::string Selection::ConditionOf(const Exemption& rule) {
  std::string all = "1 = 1";
  const std::pair<const char*, const std::string*> equal[] = {{"r.\"user\"", &rule.user},
                                                              {"r.account", &rule.account},
                                                              {"r.partition", &rule.partition},
                                                              {"r.device", &rule.device}};
  for (const auto& [column, value] : equal) {
    if (!value->empty()) all += fmt::format(" AND {} = {}", column, Placeholder(*value));
  }
  if (!rule.command.empty())
    all +=
        fmt::format(R"( AND lower(r.command) LIKE lower({}) ESCAPE '!')", Placeholder(Within(rule.command)));
  return all;
}

std::string Selection::Placeholder(const std::string& value) {
  values_.emplace_back(value);
  return fmt::format("${}", values_.size());
}

}  // namespace fullbore::fleet
