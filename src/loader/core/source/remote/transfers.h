// Transfers from servers, with the patience that networks need: every call retries what is worth retrying,
// resumes at the byte that was reached, and logs that.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "loader/core/source/remote/http_client.h"
#include "loader/core/source/remote/requests.h"
#include "loader/core/store.h"

namespace fullbore::loader::remote {

// Pauses between tries double and are drawn at random from the upper half, so that threads and ranks that
// failed together do not retry together.
struct RetryPolicy {
  int retries = 5;  // in a row, without progress
  double first_pause_s = 0.2;
  double longest_pause_s = 10;
  double longest_obeyed_s = 60;  // the longest Retry-After of a server that is obeyed
};

// Receives the bytes in order, each once. False: stop; the transfer counts as a success.
using ByteSink = std::function<bool(std::span<const uint8_t>)>;

// Thread-safe.
class Transfers {
 public:
  Transfers(HttpClient& client, Requests& requests, MessageLog& log, RetryPolicy policy)
      : client_(client), requests_(requests), log_(log), policy_(policy) {}

  Result<StoredFile> Stat(const std::string& url, const Cancellation::Token& token);
  Result<std::vector<StoredFile>> List(const std::string& prefix, const Cancellation::Token& token);
  // `bytes` bytes from `offset`; kCorrupt where the object is no longer what `file` says.
  Result<void> Fetch(const StoredFile& file, uint64_t offset, uint64_t bytes, const ByteSink& sink,
                     const Cancellation::Token& token);

 private:
  class Attempts;
  class RangeFetch;
  Error Refusal(const std::string& url, const HttpOutcome& outcome) const;
  struct Step {
    std::function<Wanted()> next = {};  // before each try
    std::function<uint64_t()> arrived = [] { return uint64_t{0}; };
    BodySink sink = {};
  };
  // Repeats until the server has given an answer that waiting will not change.
  Result<HttpOutcome> Ask(const std::string& url, const Step& step, const Cancellation::Token& token);
  Result<StoredFile> StatByRange(const std::string& url, const Cancellation::Token& token);

  HttpClient& client_;
  Requests& requests_;
  MessageLog& log_;
  const RetryPolicy policy_;
};

}  // namespace fullbore::loader::remote
