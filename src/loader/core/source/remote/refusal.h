// Turns a server's final refusal into an error that says what it means and what to do next.
#pragma once

#include <string>

#include "base/result.h"
#include "loader/core/source/remote/http_client.h"

namespace fullbore::loader::remote {

// Whether waiting may help: 408, 429, 500, 502, 503, 504, and S3's RequestTimeout, which comes as 400.
bool IsTemporary(const HttpOutcome& outcome);

// "503 (SlowDown: Please reduce your request rate)"
std::string StatusText(const HttpOutcome& outcome);

// kNotFound, kPermission, kCorrupt if the object changed, else kUnavailable. `anonymous`: the request was not
// signed, because no keys were found.
Error RefusalError(const std::string& url, const HttpOutcome& outcome, bool anonymous);

Error ChangedError(const std::string& url, const std::string& how);

}  // namespace fullbore::loader::remote
