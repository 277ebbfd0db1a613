#include "loader/core/source/remote/transfers.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/secrets.h"
#include "base/text.h"
#include "loader/core/source/remote/refusal.h"
#include "loader/core/source/remote/url.h"

namespace fullbore::loader::remote {
namespace {

// A try with this many new bytes counts as progress: a server that breaks each connection after 64 KB still
// delivers, but one that breaks it after every byte cannot hold us up for ever.
constexpr uint64_t kProgressBytes = 64 * 1024;
constexpr int kMaxLessons = 3;                     // regions or keys learned in one call
constexpr size_t kMaxListPageBytes = 16 << 20;     // 1,000 keys of 1,024 bytes, each escaped sixfold, fit
constexpr size_t kMaxListedObjects = 100'000'000;  // beyond, the server repeats itself

double Jitter() {  // 0.5 to 1
  thread_local std::minstd_rand generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.5, 1)(generator);
}

Error CancelledError(const std::string& name) {
  return {ErrorCode::kUnavailable, "reading '" + name + "' was cancelled", ""};
}

bool IsBody(int status) { return status == 200 || status == 206; }

}  // namespace

// Counts how often a call has failed in a row, and waits before the next try.
class Transfers::Attempts {
 public:
  Attempts(const RetryPolicy& policy, MessageLog& log, std::string name, const Cancellation::Token& token)
      : policy_(policy), log_(log), name_(std::move(name)), token_(token) {}

  // Waits, or returns an error if there were enough tries.
  std::optional<Error> Failed(const std::string& problem, std::optional<double> retry_after_s,
                              uint64_t new_bytes) {
    if (new_bytes >= kProgressBytes) failures_ = 0;
    if (failures_ == policy_.retries) {
      return Error{ErrorCode::kUnavailable,
                   "cannot read '" + name_ + "': " + problem + ", " + std::to_string(failures_ + 1) +
                       " times in a row",
                   "is the server reachable from here, and does it answer other clients? raise retries or "
                   "timeout_s to wait longer"};
    }
    ++failures_;
    InTrouble();
    double pause_s =
        std::min(policy_.longest_pause_s, policy_.first_pause_s * std::exp2(failures_ - 1)) * Jitter();
    if (retry_after_s) pause_s = std::max(pause_s, std::min(*retry_after_s, policy_.longest_obeyed_s));
    log_.Trouble(name_ + ": " + problem + "; retry in " +
                 FormatDuration(static_cast<int64_t>(pause_s * kNsPerSecond)) + ", try " +
                 std::to_string(failures_) + " of " + std::to_string(policy_.retries));
    const bool passed = token_.Sleep(std::chrono::nanoseconds(static_cast<int64_t>(pause_s * kNsPerSecond)));
    if (!passed) return CancelledError(name_);
    return std::nullopt;
  }

  void InTrouble() {
    if (trouble_since_ns_ == 0) trouble_since_ns_ = MonotonicNs();
  }

  void Succeeded() {
    if (trouble_since_ns_ == 0) return;
    log_.Recovered(name_ + ": the server answers again, after " +
                   FormatDuration(MonotonicNs() - trouble_since_ns_));
  }

  bool MayLearn() { return lessons_++ < kMaxLessons; }

 private:
  const RetryPolicy& policy_;
  MessageLog& log_;
  const std::string name_;
  const Cancellation::Token& token_;
  int failures_ = 0, lessons_ = 0;
  int64_t trouble_since_ns_ = 0;
};

Result<HttpOutcome> Transfers::Ask(const std::string& url, const Step& step,
                                   const Cancellation::Token& token) {
  const std::string name = MaskUrl(url);
  Attempts attempts(policy_, log_, name, token);
  for (;;) {
    const auto request = requests_.Build(step.next());
    if (!request) return request.error();
    const uint64_t before = step.arrived();
    HttpOutcome outcome = client_.Perform(*request, step.sink, token);
    if (outcome.stalled) attempts.InTrouble();
    std::string problem = outcome.problem;
    switch (outcome.end) {
      case HttpOutcome::End::kCancelled:
        return CancelledError(name);
      case HttpOutcome::End::kImpossible:
        return Error{ErrorCode::kUnavailable, "cannot read '" + name + "': " + problem, outcome.hint};
      case HttpOutcome::End::kComplete:
      case HttpOutcome::End::kStopped:
        if (!IsTemporary(outcome)) {
          const bool refused = !IsBody(outcome.headers.status);
          if (refused && requests_.LearnFrom(url, outcome) && attempts.MayLearn()) continue;
          attempts.Succeeded();
          return outcome;
        }
        problem = "the server answers " + StatusText(outcome);
        break;
      case HttpOutcome::End::kSilent:
      case HttpOutcome::End::kBroken:
        break;
    }
    if (auto enough = attempts.Failed(problem, outcome.headers.retry_after_s, step.arrived() - before)) {
      return *enough;
    }
  }
}

Error Transfers::Refusal(const std::string& url, const HttpOutcome& outcome) const {
  return RefusalError(url, outcome, requests_.Anonymous());
}

Result<StoredFile> Transfers::Stat(const std::string& url, const Cancellation::Token& token) {
  const Step step{.next = [&] { return Wanted{.url = url, .head = true}; },
                  .sink = [](const ResponseHeaders&, std::span<const uint8_t>) { return true; }};
  const auto outcome = Ask(url, step, token);
  if (!outcome) return outcome.error();
  const ResponseHeaders& headers = outcome->headers;
  if (headers.status == 200 && headers.content_length) {
    return StoredFile{url, *headers.content_length, headers.version()};
  }
  // Signed URLs allow only GET, some servers do not know
  // HEAD, and a refusal of HEAD has no body that says why.
  return StatByRange(url, token);
}

Result<StoredFile> Transfers::StatByRange(const std::string& url, const Cancellation::Token& token) {
  const Step step{.next = [&] { return Wanted{.url = url, .range = std::pair(0, 0)}; },
                  .sink =
                      [](const ResponseHeaders& headers, std::span<const uint8_t>) {
                        return headers.status == 206;  // with a 200 the whole file would follow
                      }};
  const auto outcome = Ask(url, step, token);
  if (!outcome) return outcome.error();
  const ResponseHeaders& headers = outcome->headers;
  const auto total = headers.total_bytes();
  if (IsBody(headers.status) && total) return StoredFile{url, *total, headers.version()};
  if (headers.status == 416 && total == 0u) return StoredFile{url, 0, headers.version()};
  if (IsBody(headers.status)) {
    return Error{ErrorCode::kUnsupported, "the server does not say how long '" + MaskUrl(url) + "' is",
                 "it is probably generated on the fly: serve it as a file"};
  }
  return Refusal(url, *outcome);
}

Result<std::vector<StoredFile>> Transfers::List(const std::string& prefix, const Cancellation::Token& token) {
  const auto location = ParseS3Url(prefix);
  if (!location) return location.error();
  std::vector<StoredFile> files;
  std::string continuation, page_text;
  do {
    page_text.clear();
    const Step step{.next =
                        [&] {
                          page_text.clear();
                          return Wanted{.url = prefix, .list = true, .continuation_token = continuation};
                        },
                    .sink =
                        [&](const ResponseHeaders&, std::span<const uint8_t> bytes) {
                          page_text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                          return page_text.size() <= kMaxListPageBytes;
                        }};
    const auto outcome = Ask(prefix, step, token);
    if (!outcome) return outcome.error();
    if (!IsBody(outcome->headers.status)) return Refusal(prefix, *outcome);
    auto page = ParseS3ListPage(page_text);
    if (!page) {
      return Error{page.error().code, "cannot list '" + MaskUrl(prefix) + "': " + page.error().text,
                   "is the server there an S3 server? (s3_endpoint, AWS_ENDPOINT_URL)"};
    }
    for (const S3Object& object : page->objects) {
      if (object.key.ends_with('/') && object.bytes == 0) continue;  // a "folder", made by a web console
      files.push_back({"s3://" + location->bucket + "/" + object.key, object.bytes, object.etag});
    }
    const bool stuck =
        !page->next_token.empty() && (page->next_token == continuation || page->objects.empty());
    if (stuck || files.size() > kMaxListedObjects) {
      return Error{ErrorCode::kCorrupt,
                   "the listing of '" + MaskUrl(prefix) + "' does not end: the server repeats itself", ""};
    }
    continuation = page->next_token;
  } while (!continuation.empty());
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

// One range of one object, over as many responses as it takes.
class Transfers::RangeFetch {
 public:
  RangeFetch(const StoredFile& file, uint64_t offset, uint64_t bytes, const ByteSink& sink, MessageLog& log)
      : file_(file), offset_(offset), bytes_(bytes), version_(file.version), sink_(sink), log_(log) {}

  Wanted Next() {
    begun_ = false;
    return {.url = file_.path,
            .range = std::pair(offset_ + done_, offset_ + bytes_ - 1),
            .if_match = IfMatchValue(version_)};
  }

  bool Take(const ResponseHeaders& headers, std::span<const uint8_t> bytes) {
    if (!begun_ && !Begin(headers)) return false;
    const uint64_t skipped = std::min<uint64_t>(skip_, bytes.size());
    skip_ -= skipped;
    bytes = bytes.subspan(skipped);
    const bool more_than_asked = bytes.size() > bytes_ - done_;
    bytes = bytes.first(std::min<uint64_t>(bytes.size(), bytes_ - done_));
    if (bytes.empty()) return !more_than_asked;
    stopped_ = !sink_(bytes);
    done_ += bytes.size();
    // The last byte of a 206 ends the response by itself, and the connection can be reused.
    return !stopped_ && !more_than_asked;
  }

  uint64_t done() const { return done_; }
  bool finished() const { return stopped_ || done_ == bytes_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  bool Begin(const ResponseHeaders& headers) {
    begun_ = true;
    const uint64_t from = offset_ + done_;
    const auto total = headers.total_bytes();
    if (VersionsDiffer(version_, headers.version())) {
      error_ = ChangedError(file_.path, "it was " + version_ + " and is " + headers.version());
    } else if (total && *total != file_.bytes) {
      error_ = ChangedError(
          file_.path, "it had " + std::to_string(file_.bytes) + " bytes and has " + std::to_string(*total));
    } else if (headers.status == 206 && !(headers.content_range && headers.content_range->has_range &&
                                          headers.content_range->first == from)) {
      error_ = Error{ErrorCode::kUnavailable,
                     "'" + MaskUrl(file_.path) + "': requested the bytes from " + std::to_string(from) +
                         ", the server sent others",
                     "a proxy on the way may be at fault"};
    }
    if (version_.empty()) version_ = headers.version();
    skip_ = headers.status == 200 ? from : 0;
    if (skip_ > 0) {
      log_.Once(
          "ranges", Message::Severity::kWarning,
          MaskUrl(file_.path) +
              ": the server ignores the range that was asked for, so that every read transfers the file "
              "from its beginning; use a server that supports ranges, or smaller shards");
    }
    return !error_;
  }

  const StoredFile& file_;
  const uint64_t offset_, bytes_;
  std::string version_;  // the version of the bytes so far
  const ByteSink& sink_;
  MessageLog& log_;
  uint64_t done_ = 0, skip_ = 0;
  bool begun_ = false, stopped_ = false;
  std::optional<Error> error_;
};

Result<void> Transfers::Fetch(const StoredFile& file, uint64_t offset, uint64_t bytes, const ByteSink& sink,
                              const Cancellation::Token& token) {
  RangeFetch fetch(file, offset, bytes, sink, log_);
  const Step step{.next = [&] { return fetch.Next(); },
                  .arrived = [&] { return fetch.done(); },
                  .sink = [&](const ResponseHeaders& headers,
                              std::span<const uint8_t> got) { return fetch.Take(headers, got); }};
  while (!fetch.finished()) {
    const uint64_t before = fetch.done();
    const auto outcome = Ask(file.path, step, token);
    if (!outcome) return outcome.error();
    if (fetch.error()) return *fetch.error();
    if (!IsBody(outcome->headers.status)) return Refusal(file.path, *outcome);
    if (fetch.done() == before) {  // a server may send less than requested, but not nothing
      return ChangedError(file.path, "it ends at byte " + std::to_string(offset + fetch.done()) +
                                         ", not at " + std::to_string(file.bytes));
    }
  }
  return {};
}

}  // namespace fullbore::loader::remote
