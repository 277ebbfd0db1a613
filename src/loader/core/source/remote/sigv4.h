// AWS Signature Version 4 for requests without a body.
//
// Our own, although libcurl has CURLOPT_AWS_SIGV4: libcurl's needs the payload hash and the canonical query
// from its caller, treats both differently from version to version, and takes the time from the clock, so
// that it cannot be tested against AWS's published examples. The AWS SDK would be a client, a thread pool and
// a dozen libraries, where this is a page of HMAC calls. The tests compare it with the published examples,
// and use a server that checks signatures.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fullbore::loader::remote {

struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // empty: a long-lived key

  bool operator==(const Credentials&) const = default;
};

// Names and values as they are, not encoded.
using QueryParameters = std::vector<std::pair<std::string, std::string>>;
using HeaderFields = std::vector<std::pair<std::string, std::string>>;

// "a=b&c=d", encoded and sorted as the signature covers it; what is sent must be this text.
std::string CanonicalQuery(const QueryParameters& query);

struct SigningInput {
  std::string method;  // "GET"
  std::string host;    // with the port, unless it is the scheme's default
  std::string path;    // as sent: percent-encoded, slashes kept
  std::string canonical_query;
  HeaderFields headers;  // additional headers to sign; names in lower case
  std::string region;
  std::string service = "s3";
  int64_t time_s = 0;  // since 1970
};

// The headers to send besides Host: x-amz-date, x-amz-content-sha256, x-amz-security-token if there is one,
// Authorization, and input.headers.
HeaderFields Sign(const SigningInput& input, const Credentials& credentials);

}  // namespace fullbore::loader::remote
