#include "loader/core/source/remote/http_headers.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace fullbore::loader::remote {
namespace {

constexpr std::string_view kDateVersion = "modified ";

std::optional<uint64_t> ParseUnsigned(std::string_view text) {
  uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool SameName(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(),
                    [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x - 'A' + 'a' : x) == y; });
}

// Nothing longer is a real ETag, and it would become part of each cache key.
std::string Bounded(std::string_view value) {
  constexpr size_t kMaxBytes = 1024;
  return value.size() > kMaxBytes ? std::string() : std::string(value);
}

// Some stores leave out the quotes in listings.
std::string_view EtagText(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return etag;
}

}  // namespace

std::optional<ContentRange> ParseContentRange(std::string_view value) {
  value = Trim(value);
  if (value.size() < 6 || !SameName(value.substr(0, 6), "bytes ")) return std::nullopt;
  value = Trim(value.substr(6));
  const size_t slash = value.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view range = value.substr(0, slash), total = value.substr(slash + 1);
  ContentRange parsed;
  if (total != "*") {
    parsed.total = ParseUnsigned(total);
    if (!parsed.total) return std::nullopt;
  }
  if (range == "*") return parsed;
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = ParseUnsigned(range.substr(0, dash)), last = ParseUnsigned(range.substr(dash + 1));
  if (!first || !last || *first > *last || (parsed.total && *last >= *parsed.total)) return std::nullopt;
  parsed.has_range = true;
  parsed.first = *first;
  parsed.last = *last;
  return parsed;
}

std::optional<double> ParseRetryAfter(std::string_view value, int64_t now_s) {
  value = Trim(value);
  if (const auto seconds = ParseUnsigned(value)) return static_cast<double>(*seconds);
  const time_t date = curl_getdate(std::string(value).c_str(), nullptr);
  if (date == -1) return std::nullopt;
  return static_cast<double>(std::max<int64_t>(0, static_cast<int64_t>(date) - now_s));
}

void ResponseHeaders::Take(std::string_view line, int64_t now_s) {
  line = Trim(line);
  if (line.starts_with("HTTP/")) {
    *this = {};
    const auto words = Words(line);
    const auto number = words.size() > 1 ? ParseUnsigned(words[1]) : std::nullopt;
    if (number && *number >= 100 && *number <= 999) status = static_cast<int>(*number);
    return;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = Trim(line.substr(0, colon)), value = Trim(line.substr(colon + 1));
  if (SameName(name, "content-length")) content_length = ParseUnsigned(value);
  if (SameName(name, "content-range")) content_range = ParseContentRange(value);
  if (SameName(name, "retry-after")) retry_after_s = ParseRetryAfter(value, now_s);
  if (SameName(name, "etag")) etag = Bounded(value);
  if (SameName(name, "last-modified")) last_modified = Bounded(value);
  if (SameName(name, "content-encoding")) content_encoding = Bounded(value);
  if (SameName(name, "x-amz-bucket-region")) bucket_region = Bounded(value);
}

std::optional<uint64_t> ResponseHeaders::total_bytes() const {
  if (content_range) return content_range->total;
  // The length of a 206 without a range (which occurs) is that of the part.
  return status == 200 ? content_length : std::nullopt;
}

std::string ResponseHeaders::version() const {
  if (!etag.empty()) return etag;
  return last_modified.empty() ? std::string() : std::string(kDateVersion) + last_modified;
}

std::string IfMatchValue(std::string_view version) {
  if (version.empty() || version.starts_with(kDateVersion) || version.starts_with("W/")) return "";
  return "\"" + std::string(EtagText(version)) + "\"";
}

bool VersionsDiffer(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty() || a.starts_with(kDateVersion) != b.starts_with(kDateVersion)) return false;
  return EtagText(a) != EtagText(b);
}

}  // namespace fullbore::loader::remote
