// As much of HTTP/1.1 as `serve` needs, and strictly: what is not exactly a request it expects is an error. Every
// connection carries one request, so that there is nothing to smuggle a second one into. Not a library for others.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::serve {

inline constexpr size_t kMaxHeadBytes = 16 << 10;
inline constexpr size_t kMaxBodyBytes = 64 << 10;

struct Request {
  std::string method;                          // "GET", "PUT", ...
  std::vector<std::string> path;               // decoded: "/api/v1/runs" is {"api", "v1", "runs"}
  std::map<std::string, std::string> query;    // decoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  std::string Header(const std::string& name) const;  // empty if there is none
  std::string Query(const std::string& name) const;
  std::string Cookie(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::shared_ptr<const std::string> body;
  std::vector<std::pair<std::string, std::string>> headers;
  // Not empty: the connection stays open, and gets what is published under this name (server-sent events).
  std::string stream;
  bool later = false;  // there is no answer yet: the request is asked again until there is one

  static Response Of(std::string type, std::string body, int status = 200);
  // {"error": text, "hint": hint}
  static Response Failure(int status, std::string_view text, std::string_view hint = "");
  static Response Later();
};

// What has come of a request so far.
struct Parsed {
  enum class State { kMore, kComplete, kRefused };
  State state = State::kMore;
  Request request;   // complete
  Response refusal;  // refused
};

Parsed Parse(std::string_view bytes);

// Status line and headers, those that every answer has included (no scripts from elsewhere, no framing, no sniffing).
std::string HeadOf(const Response& response);

}  // namespace fullbore::serve
