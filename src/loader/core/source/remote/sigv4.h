// AWS Signature Version 4 for requests without a body.
//
// Of our own although libcurl has CURLOPT_AWS_SIGV4: that one wants the payload's hash and the query in
// canonical form from its caller, treats both differently from version to version, and takes the time from
// the clock, so that it cannot be held against AWS's published examples. And although there is the AWS SDK: that
// is a client, a thread pool and a dozen libraries, where this is a page of calls of HMAC. The tests hold it against
// the published examples, and against a server that checks signatures.
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
  std::string host;    // with the port, where it is not the scheme's own
  std::string path;    // as sent: percent-encoded, slashes kept
  std::string canonical_query;
  HeaderFields headers;  // further ones to sign; names in lower case
  std::string region;
  std::string service = "s3";
  int64_t time_s = 0;  // since 1970
};

// The headers to send beside Host: x-amz-date, x-amz-content-sha256, x-amz-security-token where there is one,
// Authorization, and input.headers.
HeaderFields Sign(const SigningInput& input, const Credentials& credentials);

}  // namespace fullbore::loader::remote
