#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/authorities.h"
#include "base/clock.h"
#include "base/secrets.h"
#include "watch/notify/delivery.h"

namespace fullbore::watch {

namespace {

constexpr long kConnectS = 5, kWholeS = 15;
constexpr long kLeastError = 400, kServerError = 500;
constexpr long kComeBackLater[] = {408, 425, 429};  // the only refusals that mean "not now"

constexpr size_t kMostOfAnAnswer = 1 << 20;  // an honest one is a line
constexpr size_t kLongestReason = 40;
constexpr double kLongestWaitS =
    24 * 3600;  // which no message waits for; a number without bounds is nobody's wish

size_t Keep(char* bytes, size_t size, size_t count, void* data) {
  auto& answer = *static_cast<std::string*>(data);
  answer.append(bytes, std::min(size * count, kMostOfAnAnswer - answer.size()));
  return size * count;
}

using Lines = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

// Without all of them where memory ends.
Lines LinesOf(const std::vector<std::string>& headers) {
  Lines lines(curl_slist_append(nullptr, "Content-Type: application/json"), &curl_slist_free_all);
  for (const std::string& header : headers) {
    curl_slist* const longer = curl_slist_append(lines.get(), header.c_str());
    if (!longer) break;
    (void)lines.release();
    lines.reset(longer);
  }
  return lines;
}

struct Stop {
  const std::atomic<bool>& told;
  int64_t since_ns = 0;
};

// Called by curl about once a second, and whenever something moves.
int IsStopped(void* data, curl_off_t, curl_off_t, curl_off_t, curl_off_t sent) {
  auto& stop = *static_cast<Stop*>(data);
  if (!stop.told) return 0;
  if (stop.since_ns == 0) stop.since_ns = MonotonicNs();
  return sent == 0 || MonotonicNs() - stop.since_ns > kLeaveNs ? 1 : 0;
}

bool IsWorthARetry(long status) {
  for (const long later : kComeBackLater) {
    if (status == later) return true;
  }
  return status >= kServerError ||
         status < kLeastError;  // below: a redirect, perhaps to a page of maintenance
}

// "https://***@host": whom it was sent to. The path of a webhook is its password.
std::string OriginOf(const std::string& url) {
  const std::string masked = MaskUrl(url);
  const size_t scheme = masked.find("://");
  return masked.substr(0, masked.find_first_of("/?#", scheme == std::string::npos ? 0 : scheme + 3));
}

// How long a server that says "too many" wants to be left alone: by the header, or as Discord says it in the answer, to
// the millisecond.
int64_t WaitAskedNs(CURL* curl, const nlohmann::json& answer) {
  curl_off_t header_s = 0;
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &header_s);
  const auto said = answer.is_object() ? answer.find("retry_after") : answer.end();
  const double said_s =
      answer.is_object() && said != answer.end() && said->is_number() ? said->get<double>() : 0;
  const double wait_s = std::max(static_cast<double>(header_s), said_s);
  return static_cast<int64_t>(std::clamp(wait_s, 0.0, kLongestWaitS) * static_cast<double>(kNsPerSecond));
}

// "invalid_payload", "Unknown Webhook": why a chat refuses. A text with a digit or a slash may hold the URL's secret.
std::string ReasonIn(const std::string& answer, const nlohmann::json& json) {
  const auto message = json.is_object() ? json.find("message") : json.end();
  const bool is_said = json.is_object() && message != json.end() && message->is_string();
  const std::string reason = is_said ? message->get<std::string>() : answer;
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ' ';
  };
  const bool can_be_shown =
      !reason.empty() && reason.size() <= kLongestReason && std::ranges::all_of(reason, is_word);
  return can_be_shown ? ": " + reason : "";
}

Attempt OutcomeOf(CURL* curl, CURLcode code, const std::string& url, const std::string& answer) {
  if (code == CURLE_OK) {
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300) return {Attempt::End::kDelivered, ""};
    const auto json = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
    Attempt attempt{IsWorthARetry(status) ? Attempt::End::kFailed : Attempt::End::kRefused,
                    fmt::format("it answered with status {}{}", status, ReasonIn(answer, json))};
    attempt.wait_ns = WaitAskedNs(curl, json);
    return attempt;
  }
  const bool hopeless = code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT;
  return {hopeless ? Attempt::End::kRefused : Attempt::End::kFailed,
          fmt::format("{}: {}", OriginOf(url), curl_easy_strerror(code))};
}

}  // namespace

Attempt Post(const std::string& url, const std::string& json, const std::atomic<bool>& stop,
             const std::vector<std::string>& headers) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), &curl_easy_cleanup);
  if (!curl) return {Attempt::End::kFailed, "no memory"};
  const Lines lines = LinesOf(headers);
  const std::string authorities = AuthoritiesPath({"CURL_CA_BUNDLE", "SSL_CERT_FILE"});
  std::string answer;
  CURL* const easy = curl.get();
  Stop stopping{stop};
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "fullbore");
  if (!authorities.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, authorities.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, lines.get());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, json.c_str());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(json.size()));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectS);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT, kWholeS);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, Keep);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, IsStopped);
  curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &stopping);
  Attempt attempt = OutcomeOf(easy, curl_easy_perform(easy), url, answer);
  attempt.answer = std::move(answer);
  return attempt;
}

}  // namespace fullbore::watch
