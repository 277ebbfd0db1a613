// HTTP requests, one at a time per thread, over connections that are kept for the next one. libcurl's header
// stays in the .cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "loader/core/source/remote/cancellation.h"
#include "loader/core/source/remote/http_headers.h"
#include "loader/core/source/remote/message_log.h"

namespace fullbore::loader::remote {

struct HttpRequest {
  bool head = false;
  bool follow_redirects = true;  // not if a signature covers the host
  std::string url;
  std::string name;                  // for messages
  std::vector<std::string> headers;  // "Name: value"
};

struct HttpOutcome {
  enum class End {
    kComplete,   // the whole response arrived, whatever its status
    kStopped,    // the sink stopped it
    kCancelled,  // Cancellation
    kSilent,     // no byte for timeout_s
    kBroken,     // the connection failed or ended early: worth a retry
    kImpossible  // a bad URL, a certificate that does not verify: a retry will not help
  };
  End end = End::kImpossible;
  ResponseHeaders headers;
  std::string problem;     // kSilent, kBroken, kImpossible: what went wrong
  std::string hint;        // what to do about it, if known
  std::string error_body;  // the beginning of the body if the status is neither 200 nor 206
  bool stalled = false;    // it was silent for so long that a message was logged
};

// Called with each piece of the body of a 200 or 206. False: stop.
using BodySink = std::function<bool(const ResponseHeaders&, std::span<const uint8_t>)>;

// Thread-safe. Connections stay open between requests, one per concurrent thread. A forked child opens its
// own, because two processes on one connection would mix up their responses.
class HttpClient {
 public:
  HttpClient(double timeout_s, MessageLog& log);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  HttpOutcome Perform(const HttpRequest& request, const BodySink& sink, const Cancellation::Token& token);

  // Wakes transfers that wait for the network, so that they check their tokens.
  void Wake();

 private:
  class Connection;
  std::unique_ptr<Connection> Lease();
  void Return(std::unique_ptr<Connection> connection);

  const double timeout_s_;
  const std::string authorities_path_;  // empty: the system's authorities
  MessageLog& log_;
  std::mutex mutex_;  // protects what follows
  std::vector<std::unique_ptr<Connection>> idle_;
  std::vector<Connection*> busy_;
  int owner_pid_;
};

}  // namespace fullbore::loader::remote
