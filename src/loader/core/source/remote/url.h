// The few things that we do with URLs: recognise them and encode keys.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fullbore::loader::remote {

enum class Scheme { kNone, kHttp, kS3 };
Scheme SchemeOf(std::string_view url);  // by "http://", "https://", "s3://", in any case

// Everything behind "s3://bucket/" is the key as it is: '%',
// '?', '#' and '+' mean themselves, as for the AWS command line.
struct S3Location {
  std::string bucket;
  std::string key;
};
Result<S3Location> ParseS3Url(std::string_view url);

// Percent-encodes everything but RFC 3986's unreserved characters, as Signature V4 asks for.
std::string PercentEncode(std::string_view text, bool keep_slashes);

// For an http URL as people type it: encodes blanks and non-ASCII bytes, and keeps what is already encoded.
std::string EncodeTypedUrl(std::string_view url);

}  // namespace fullbore::loader::remote
