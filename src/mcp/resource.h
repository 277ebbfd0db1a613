// What can be read by its name, beside what tools answer:
//
//   fullbore://runs                 all recorded runs, as `fullbore runs --json`
//   fullbore://runs/ID              the report on one, as `fullbore explain ID --json`
//   fullbore://reports/N            what a call of this session answered, whole
//   fullbore://reports/N/PATH       a part of it (bounded.h)
#pragma once

#include <string>

#include "mcp/message.h"
#include "mcp/tool.h"

namespace fullbore::mcp {

Json ResourceOf(const std::string& uri, const std::string& name, const std::string& description);
Json ResourceTemplates();
Json ContentsOf(const std::string& uri, const Json& value);

// The call that answers fullbore://runs and fullbore://runs/ID.
Result<Call> CallOfRuns(const std::string& uri, const Place& place);

}  // namespace fullbore::mcp
