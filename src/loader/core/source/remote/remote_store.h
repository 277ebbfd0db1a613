// Bytes over HTTP(S) and from S3-compatible stores, behind
// a disk cache that all processes of a machine share.
//
// Temporary failures (500, 503, 429, resets, half a body, silence) are retried from the byte that was
// reached, and logged. Failures that waiting does not cure (403, 404, a changed object) are returned at once.
#pragma once

#include <memory>
#include <string>

#include "loader/core/store.h"

namespace fullbore::loader {

// For http://, https:// and s3://; one store serves URLs of all three, whichever it was opened with.
//
// Reads neither lists nor connects; fails where `url` or the options cannot be used. Cancel() ends the calls
// that are under way, within milliseconds; calls made later work again, so that an iteration can be
// resumed after Ctrl-C. List is for s3:// only.
Result<std::shared_ptr<Store>> OpenRemoteStore(const std::string& url, const SourceOptions& options);

}  // namespace fullbore::loader
