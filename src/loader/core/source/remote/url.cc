#include "loader/core/source/remote/url.h"

#include <algorithm>
#include <cctype>

#include "base/secrets.h"

namespace fullbore::loader::remote {
namespace {

bool StartsWithIgnoringCase(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(),
                    [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

bool IsUnreserved(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' || c == '~';
}

void AppendEncoded(std::string& out, char c) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  out += '%';
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

}  // namespace

Scheme SchemeOf(std::string_view url) {
  if (StartsWithIgnoringCase(url, "http://") || StartsWithIgnoringCase(url, "https://")) return Scheme::kHttp;
  if (StartsWithIgnoringCase(url, "s3://")) return Scheme::kS3;
  return Scheme::kNone;
}

Result<S3Location> ParseS3Url(std::string_view url) {
  if (SchemeOf(url) != Scheme::kS3) {
    return Error{ErrorCode::kInvalidArgument, "'" + MaskUrl(url) + "' is not an s3:// URL",
                 "write s3://bucket/key"};
  }
  const std::string_view rest = url.substr(5);
  const size_t slash = std::min(rest.find('/'), rest.size());
  S3Location location{std::string(rest.substr(0, slash)),
                      std::string(rest.substr(std::min(slash + 1, rest.size())))};
  // The bucket becomes part of a host name.
  const bool legal =
      !location.bucket.empty() && std::all_of(location.bucket.begin(), location.bucket.end(),
                                              [](char c) { return IsUnreserved(c) && c != '~'; });
  if (!legal) {
    return Error{ErrorCode::kInvalidArgument,
                 "'" + MaskUrl(url) + "' names no bucket: letters, digits, '-', '_' and '.' are allowed",
                 "write s3://bucket/key"};
  }
  return location;
}

std::string PercentEncode(std::string_view text, bool keep_slashes) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (const char c : text) {
    if (IsUnreserved(c) || (keep_slashes && c == '/')) {
      out += c;
    } else {
      AppendEncoded(out, c);
    }
  }
  return out;
}

std::string EncodeTypedUrl(std::string_view url) {
  std::string out;
  for (const char c : url) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte >= 0x7f || c == '"' || c == '<' || c == '>' || c == '\\') {
      AppendEncoded(out, c);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace fullbore::loader::remote
