// The response header fields that matter here. Whatever a server sends, parsing ends in a known state: fields
// that cannot be parsed are absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fullbore::loader::remote {

// "bytes 0-499/1234"; "bytes 0-499/*" has no total; "bytes */1234" (of a 416) has no range.
struct ContentRange {
  bool has_range = false;
  uint64_t first = 0, last = 0;
  std::optional<uint64_t> total;
};
std::optional<ContentRange> ParseContentRange(std::string_view value);

// Seconds, or an HTTP date, which is compared with `now_s` since 1970. Never negative.
std::optional<double> ParseRetryAfter(std::string_view value, int64_t now_s);

struct ResponseHeaders {
  int status = 0;
  std::optional<uint64_t> content_length;
  std::optional<ContentRange> content_range;
  std::optional<double> retry_after_s;
  std::string etag;  // with its quotes
  std::string last_modified;
  std::string content_encoding;
  std::string bucket_region;  // x-amz-bucket-region

  // Accepts a line with or without its line end. A status line begins a new response: after a redirect only
  // the last response counts.
  void Take(std::string_view line, int64_t now_s);

  std::optional<uint64_t> total_bytes() const;  // of the whole object, from whichever field has it
  std::string version() const;                  // for StoredFile::version
};

// Whether two versions differ that are both non-empty and of the same kind (ETags or dates). Weak ETags are
// compared by their text.
bool VersionsDiffer(std::string_view a, std::string_view b);

// What to send as If-Match so that a changed object answers
// 412; empty if the version cannot be used for that.
std::string IfMatchValue(std::string_view version);

}  // namespace fullbore::loader::remote
