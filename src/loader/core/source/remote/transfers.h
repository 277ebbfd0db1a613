// What is asked of servers, with the patience that networks need: every call here tries again what is worth
// another try, goes on from the byte that was reached, and says so in the messages.
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

// Pauses between tries grow twofold and are drawn at random from the upper half, so that the threads and
// ranks that failed together do not come back together.
struct RetryPolicy {
  int retries = 5;  // in a row, without progress
  double first_pause_s = 0.2;
  double longest_pause_s = 10;
  double longest_obeyed_s = 60;  // of a server's Retry-After
};

// Receives the bytes in order, each once. False: stop, with success as far as the transfer goes.
using ByteSink = std::function<bool(std::span<const uint8_t>)>;

// Any thread.
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
  // Until the server has answered with something that waiting does not change.
  Result<HttpOutcome> Ask(const std::string& url, const Step& step, const Cancellation::Token& token);
  Result<StoredFile> StatByRange(const std::string& url, const Cancellation::Token& token);

  HttpClient& client_;
  Requests& requests_;
  MessageLog& log_;
  const RetryPolicy policy_;
};

}  // namespace fullbore::loader::remote
