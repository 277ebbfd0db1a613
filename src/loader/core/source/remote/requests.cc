#include "loader/core/source/remote/requests.h"

#include <ctime>
#include <set>

#include "base/secrets.h"
#include "loader/core/source/remote/url.h"

namespace fullbore::loader::remote {
namespace {

struct Server {
  std::string base;  // "https://host:port"
  std::string host;  // as in the Host header
  std::string path;  // before the key: "", "/bucket"
};

Server ServerAt(const std::string& endpoint, const std::string& bucket) {
  const size_t begin = endpoint.find("//") + 2;
  const size_t slash = std::min(endpoint.find('/', begin), endpoint.size());
  Server server{endpoint.substr(0, slash), endpoint.substr(begin, slash - begin),
                endpoint.substr(slash) + "/" + bucket};
  // libcurl leaves the scheme's default port out of Host.
  const std::string own_port = endpoint.starts_with("https") ? ":443" : ":80";
  if (server.host.ends_with(own_port)) server.host.resize(server.host.size() - own_port.size());
  return server;
}

Server AwsServer(const std::string& bucket, const std::string& region) {
  const std::string host = "s3." + region + ".amazonaws.com";
  // No certificate covers a bucket name with dots in it.
  if (bucket.find('.') != std::string::npos) return {"https://" + host, host, "/" + bucket};
  return {"https://" + bucket + "." + host, bucket + "." + host, ""};
}

void AddFields(const Wanted& wanted, std::vector<std::string>& headers) {
  if (wanted.range) {
    headers.push_back("Range: bytes=" + std::to_string(wanted.range->first) + "-" +
                      std::to_string(wanted.range->second));
  }
  if (!wanted.if_match.empty()) headers.push_back("If-Match: " + wanted.if_match);
}

bool KeysMayHaveExpired(const std::string& code) {
  static const std::set<std::string> kCodes = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired",
                                               "InvalidAccessKeyId"};
  return kCodes.contains(code);
}

}  // namespace

Requests::Requests(std::string endpoint_option, S3Surroundings surroundings)
    : endpoint_option_(std::move(endpoint_option)),
      surroundings_(std::move(surroundings)),
      access_(FindS3Access(endpoint_option_, surroundings_)) {}

Result<HttpRequest> Requests::Build(const Wanted& wanted) {
  if (SchemeOf(wanted.url) == Scheme::kS3) return BuildS3(wanted);
  HttpRequest request;
  request.head = wanted.head;
  request.url = EncodeTypedUrl(wanted.url);
  request.name = MaskUrl(wanted.url);
  AddFields(wanted, request.headers);
  return request;
}

Result<HttpRequest> Requests::BuildS3(const Wanted& wanted) {
  const auto location = ParseS3Url(wanted.url);
  if (!location) return location.error();
  std::lock_guard lock(mutex_);
  if (!access_) return access_.error();
  const auto known = bucket_regions_.find(location->bucket);
  const std::string region = known == bucket_regions_.end() ? access_->region : known->second;
  const Server server = access_->endpoint.empty() ? AwsServer(location->bucket, region)
                                                  : ServerAt(access_->endpoint, location->bucket);
  SigningInput input;
  input.method = wanted.head ? "HEAD" : "GET";
  input.host = server.host;
  input.region = region;
  input.time_s = std::time(nullptr);
  input.path = server.path;
  if (!wanted.list) input.path += "/" + PercentEncode(location->key, true);
  if (input.path.empty()) input.path = "/";
  if (wanted.list) {
    QueryParameters query = {{"list-type", "2"}, {"prefix", location->key}};
    if (!wanted.continuation_token.empty())
      query.emplace_back("continuation-token", wanted.continuation_token);
    input.canonical_query = CanonicalQuery(query);
  }
  HttpRequest request;
  request.head = wanted.head;
  request.follow_redirects = false;
  request.name = MaskUrl(wanted.url);
  request.url = server.base + input.path + (wanted.list ? "?" + input.canonical_query : "");
  AddFields(wanted, request.headers);
  if (access_->credentials) {
    for (const auto& [name, value] : Sign(input, *access_->credentials))
      request.headers.push_back(name + ": " + value);
  }
  return request;
}

bool Requests::LearnFrom(const std::string& url, const HttpOutcome& refused) {
  const auto location = ParseS3Url(url);
  if (!location) return false;
  const auto error = ParseS3Error(refused.error_body);
  const std::string region =
      !refused.headers.bucket_region.empty() ? refused.headers.bucket_region : (error ? error->region : "");
  std::lock_guard lock(mutex_);
  if (!access_) return false;
  if (!region.empty()) {
    std::string& known = bucket_regions_.try_emplace(location->bucket, access_->region).first->second;
    if (known != region) {
      known = region;
      return true;
    }
  }
  if (!error || !KeysMayHaveExpired(error->code)) return false;
  auto again = FindS3Access(endpoint_option_, surroundings_);
  if (!again || again->credentials == access_->credentials) return false;
  access_ = std::move(again);
  return true;
}

bool Requests::Anonymous() const {
  std::lock_guard lock(mutex_);
  return access_.ok() && !access_->credentials;
}

std::string Requests::S3Endpoint() const {
  std::lock_guard lock(mutex_);
  return access_.ok() ? access_->endpoint : "";
}

}  // namespace fullbore::loader::remote
