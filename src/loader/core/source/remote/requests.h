// Builds the HTTP request for a read of a URL: addressed, encoded and, for S3, signed.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "loader/core/source/remote/http_client.h"
#include "loader/core/source/remote/s3_access.h"
#include "loader/core/source/remote/s3_xml.h"

namespace fullbore::loader::remote {

struct Wanted {
  std::string url;  // as the user wrote it
  bool head = false;
  std::optional<std::pair<uint64_t, uint64_t>> range = std::nullopt;  // first and last byte
  std::string if_match = {};
  bool list = false;  // one page of the bucket's keys that begin with the URL's key
  std::string continuation_token = {};
};

// Thread-safe.
class Requests {
 public:
  Requests(std::string endpoint_option, S3Surroundings surroundings);

  // Built again for each try, because a signature is valid only for some minutes.
  Result<HttpRequest> Build(const Wanted& wanted);

  // After a refusal: true if it taught something that may change the answer (the bucket's region; keys that
  // were renewed in ~/.aws), so that the request is worth building again.
  bool LearnFrom(const std::string& url, const HttpOutcome& refused);

  bool Anonymous() const;
  // Names the store of S3 URLs: the same bucket and key at another endpoint are a different object.
  std::string S3Endpoint() const;

 private:
  Result<HttpRequest> BuildS3(const Wanted& wanted);

  const std::string endpoint_option_;
  const S3Surroundings surroundings_;
  mutable std::mutex mutex_;  // protects what follows
  Result<S3Access> access_;
  std::map<std::string, std::string> bucket_regions_;
};

}  // namespace fullbore::loader::remote
