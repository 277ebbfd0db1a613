#include "loader/core/source/remote/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <ctime>

#include "base/result.h"
#include "loader/core/source/remote/url.h"

namespace fullbore::loader::remote {
namespace {

constexpr size_t kSha256Bytes = 32;

std::string Hex(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::string Sha256(std::string_view text) {
  unsigned char digest[kSha256Bytes];
  FB_CHECK(EVP_Digest(text.data(), text.size(), digest, nullptr, EVP_sha256(), nullptr) == 1);
  return {reinterpret_cast<const char*>(digest), sizeof digest};
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  unsigned char digest[kSha256Bytes];
  unsigned int bytes = 0;
  FB_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &bytes) != nullptr);
  return {reinterpret_cast<const char*>(digest), bytes};
}

std::string BasicTime(int64_t time_s) {  // "20130524T000000Z"
  const auto seconds = static_cast<time_t>(time_s);
  tm utc{};
  FB_CHECK(gmtime_r(&seconds, &utc) != nullptr);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &utc)};
}

}  // namespace

std::string CanonicalQuery(const QueryParameters& query) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : query) {
    parts.push_back(PercentEncode(name, false) + "=" + PercentEncode(value, false));
  }
  std::sort(parts.begin(), parts.end());
  std::string joined;
  for (const auto& part : parts) joined += (joined.empty() ? "" : "&") + part;
  return joined;
}

HeaderFields Sign(const SigningInput& input, const Credentials& credentials) {
  const std::string time = BasicTime(input.time_s), date = time.substr(0, 8);
  const std::string body_hash = Hex(Sha256(""));
  HeaderFields headers = input.headers;
  headers.emplace_back("x-amz-content-sha256", body_hash);
  headers.emplace_back("x-amz-date", time);
  if (!credentials.session_token.empty()) {
    headers.emplace_back("x-amz-security-token", credentials.session_token);
  }
  HeaderFields signed_headers = headers;
  signed_headers.emplace_back("host", input.host);
  std::sort(signed_headers.begin(), signed_headers.end());

  std::string lines, names;
  for (const auto& [name, value] : signed_headers) {
    lines += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string request = input.method + "\n" + input.path + "\n" + input.canonical_query + "\n" + lines +
                              "\n" + names + "\n" + body_hash;
  const std::string scope = date + "/" + input.region + "/" + input.service + "/aws4_request";
  const std::string to_sign = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + Hex(Sha256(request));

  std::string key = HmacSha256("AWS4" + credentials.secret_access_key, date);
  for (const std::string& part : {input.region, input.service, std::string("aws4_request")}) {
    key = HmacSha256(key, part);
  }
  headers.emplace_back("Authorization", "AWS4-HMAC-SHA256 Credential=" + credentials.access_key_id + "/" +
                                            scope + ",SignedHeaders=" + names +
                                            ",Signature=" + Hex(HmacSha256(key, to_sign)));
  return headers;
}

}  // namespace fullbore::loader::remote
