// What `serve` answers to each request: pages, JSON under /api/v1 (described by web/serve/openapi.json), /metrics and
// /healthz. Knows no sockets; called by one thread, the one that ticks the RunsFolder.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "serve/access.h"
#include "serve/http.h"
#include "serve/shown_run.h"
#include "watch/runs_folder.h"

namespace fullbore::serve {

struct Parts {
  watch::RunsFolder& folder;
  ShownRuns::Explain explain;
  // Rules, what fires and what has, for /api/v1/alerts; where nobody gives it, there are none.
  std::function<nlohmann::ordered_json()> alerts;
  int64_t waits_ns = ShownRuns::kWaitsNs;  // for a run that is being judged; then the answer comes later
  bool may_delete = false;                 // runs, by those who have the token
};

class Api {
 public:
  Api(Parts parts, Access access);

  Response Answer(const Request& request);

  // What a page of a live run is told after each look at it: the event `live` of the stream StreamOf(name).
  static std::string StreamOf(const std::string& name) { return "run/" + name; }
  static std::string LiveEvent(const watch::LiveRun& run, bool over);

 private:
  Response Route(const Request& request);
  Response LogIn(const Request& request) const;
  Response Versioned(const Request& request);
  Response ListRuns(const Request& request);
  Response OneRun(const Request& request);
  Response OfRun(const Request& request, const std::string& name, const watch::KnownRun& run);
  Response Edit(const Request& request, const std::string& name, const watch::KnownRun& run);
  Response Delete(const Request& request, const std::string& name, const watch::KnownRun& run);
  bool MayDelete(const watch::KnownRun& run) const;
  Response Compare(const Request& request);
  Response Alerts() const;
  Response Health() const;

  Parts parts_;
  Access access_;
  ShownRuns shown_;
};

}  // namespace fullbore::serve
