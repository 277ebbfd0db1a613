#include "loader/core/source/remote/refusal.h"

#include <map>

#include "base/clock.h"
#include "base/secrets.h"
#include "base/text.h"
#include "base/utf8.h"
#include "loader/core/source/remote/s3_xml.h"
#include "loader/core/source/remote/url.h"

namespace fullbore::loader::remote {
namespace {

std::string HintFor(const S3ErrorText& error, bool anonymous) {
  if (error.code == "AccessDenied" && anonymous) {
    return "no keys were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE for "
           "~/.aws/credentials";
  }
  if (error.code == "RequestTimeTooSkewed") {
    return "set this machine's clock (it says " + FormatUtc(WallNs()) +
           " UTC): it is too far from the server's";
  }
  static const std::map<std::string, std::string> kHints = {
      {"NoSuchBucket", "check the bucket's name and the endpoint (s3_endpoint, AWS_ENDPOINT_URL)"},
      {"NoSuchKey", "check the key: case and the whole prefix matter"},
      {"AccessDenied", "these keys may not read it: grant them s3:GetObject, and s3:ListBucket for listing"},
      {"SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY does not belong to this access key: copy it again"},
      {"InvalidAccessKeyId", "the server does not know AWS_ACCESS_KEY_ID: is it for this endpoint?"},
      {"ExpiredToken", "renew the keys of the session, for example with `aws sso login`"},
      {"InvalidToken", "AWS_SESSION_TOKEN does not belong to these keys: set all three again"},
      {"PermanentRedirect", "set AWS_REGION to the bucket's region"},
      {"AuthorizationHeaderMalformed", "set AWS_REGION to the bucket's region"},
      {"InvalidObjectState", "the object is archived: restore it first"},
  };
  const auto found = kHints.find(error.code);
  return found == kHints.end() ? "" : found->second;
}

ErrorCode CodeFor(int status) {
  switch (status) {
    case 404:
    case 410:
      return ErrorCode::kNotFound;
    case 401:
    case 403:
    case 407:
      return ErrorCode::kPermission;
    default:
      return ErrorCode::kUnavailable;
  }
}

std::string HttpHint(int status) {
  if (status == 401 || status == 403)
    return "a signed URL may have expired; otherwise the server wants a login";
  if (status == 404 || status == 410) return "check the URL";
  return "";
}

}  // namespace

bool IsTemporary(const HttpOutcome& outcome) {
  switch (outcome.headers.status) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return true;
    case 400: {
      const auto error = ParseS3Error(outcome.error_body);
      return error && error->code == "RequestTimeout";
    }
    default:
      return false;
  }
}

std::string StatusText(const HttpOutcome& outcome) {
  std::string text = std::to_string(outcome.headers.status);
  const auto error = ParseS3Error(outcome.error_body);
  if (!error) return text;
  constexpr size_t kMaxMessageBytes = 200;
  const std::string message(Utf8Front(error->message, kMaxMessageBytes));
  const std::string code(Utf8Front(error->code, kMaxMessageBytes));
  return text + " (" + code + (message.empty() ? "" : ": " + message) + ")";
}

Error RefusalError(const std::string& url, const HttpOutcome& outcome, bool anonymous) {
  const int status = outcome.headers.status;
  if (status == 412) return ChangedError(url, "it has a different ETag now");
  if (status == 416) return ChangedError(url, "it ends earlier now");
  std::string hint = HttpHint(status);
  if (SchemeOf(url) == Scheme::kS3) {
    // A refusal without text (some servers send none to unknown clients) means the same as AccessDenied.
    S3ErrorText without_text;
    if (status == 401 || status == 403) without_text.code = "AccessDenied";
    hint = HintFor(ParseS3Error(outcome.error_body).value_or(without_text), anonymous);
  }
  return {CodeFor(status), "cannot read '" + MaskUrl(url) + "': the server answers " + StatusText(outcome),
          hint};
}

Error ChangedError(const std::string& url, const std::string& how) {
  return {ErrorCode::kCorrupt, "'" + MaskUrl(url) + "' changed while it was in use: " + how,
          "training data must not change during training: write new versions under new names"};
}

}  // namespace fullbore::loader::remote
