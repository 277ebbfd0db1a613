// Who may ask for what. On loopback everybody on this machine may read; any other address needs the token for that, and
// to change something needs it everywhere.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "serve/http.h"

namespace fullbore::serve {

inline constexpr size_t kShortestToken = 16;

// The first line of a file; an error if it is shorter than kShortestToken, or if others than this user and root may
// change the file.
Result<std::string> ReadToken(const std::string& path);

// What is wrong with a token file that others may read; nothing if only its owner may.
std::optional<std::string> ExposureOf(const std::string& token_file);

bool IsLoopback(const std::string& address);  // "127.0.0.1:7788", "[::1]:7788", "localhost:0"

class Access {
 public:
  // Without a token nothing can be changed. `address` is what the server listens on.
  Access(const std::string& address, std::optional<std::string> token);

  // Why the request is refused; nothing if it is not. Checks the name it was sent to (a page elsewhere may have its own
  // name point here), where it comes from, and the token where one is needed.
  std::optional<Response> Refusal(const Request& request) const;
  bool IsToken(const std::string& text) const;  // in a time that does not tell how much of it is right

 private:
  bool IsOurs(const std::string& host) const;
  bool HasToken(const Request& request) const;

  bool loopback_;
  std::optional<std::string> token_;
  std::set<std::string> names_;
};

inline constexpr char kTokenCookie[] = "fullbore_token";

}  // namespace fullbore::serve
