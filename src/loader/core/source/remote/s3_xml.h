// The two answers of S3 that are XML: a page of a listing, and an error. Read by pugixml, which neither
// recurses nor expands entities that a document defines; the receiver limits how much text it takes from the
// network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fullbore::loader::remote {

struct S3Object {
  std::string key;
  uint64_t bytes = 0;
  std::string etag;           // with its quotes
  std::string last_modified;  // "2026-11-20T21:32:32.000Z"
};

struct S3ListPage {
  std::vector<S3Object> objects;
  std::string next_token;  // empty: this was the last page
};
// kCorrupt if it is not a complete ListBucketResult.
Result<S3ListPage> ParseS3ListPage(std::string_view xml);

struct S3ErrorText {
  std::string code;     // "NoSuchBucket"
  std::string message;  // the server's sentence
  std::string region;   // where the bucket is, if the error is about that
};
std::optional<S3ErrorText> ParseS3Error(std::string_view xml);

}  // namespace fullbore::loader::remote
