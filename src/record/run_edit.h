// What people may change of a run that is recorded: its tags, and a note. The run may be live: its recorder then waits
// for the few milliseconds that this takes. Whoever calls has masked secrets (base/secrets.h).
#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace fullbore::record {

Result<void> SetTags(const std::string& path, const std::map<std::string, std::string>& tags);  // all of them
Result<void> SetNote(const std::string& path, const std::string& note);

}  // namespace fullbore::record
