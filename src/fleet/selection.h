// Which rows of a fleet's database a question is about: the newest of each run in a range, each with the first exemption
// that applies. As SQL, before the query itself, which reads the table `newest`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fleet/sql/sql.h"
#include "fleet/store.h"
#include "fleet/sums.h"

namespace fullbore::fleet {

class Selection {
 public:
  Selection(const Range& range, const std::vector<Exemption>& exemptions);

  std::string With(const std::string& sql) const { return newest_ + sql; }
  const sql::Values& values() const { return values_; }  // $1, $2, ...
  sql::Values ValuesAnd(sql::Value value) const;

 private:
  std::string ConditionOf(const Exemption& rule);
  std::string Placeholder(const std::string& value);

  sql::Values values_;
  std::string newest_;
};

}  // namespace fullbore::fleet
