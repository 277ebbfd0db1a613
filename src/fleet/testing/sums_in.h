// The sums of runs as reports get them: through a database.
#pragma once

#include <string>
#include <vector>

#include "base/temporary_directory.h"
#include "fleet/report.h"
#include "fleet/store.h"

namespace fullbore::fleet {

inline Sums SumsIn(const std::vector<RunAccount>& runs, const std::string& user = "",
                   const std::vector<Exemption>& exemptions = {}) {
  const TemporaryDirectory directory = TemporaryDirectory::Make().value();
  Store store = Store::Open(directory.path() + "/fleet.db").value();
  for (size_t i = 0; i < runs.size(); ++i)
    FB_CHECK(store.Put(runs[i], {.bytes = 1, .changed_ns = static_cast<int64_t>(i)}).ok());
  return store.SumsOf({.user = user}, exemptions).value();
}

inline Report ReportOn(const std::vector<RunAccount>& runs, By by, const std::string& user = "") {
  return ReportOn(SumsIn(runs, user), by);
}

}  // namespace fullbore::fleet
