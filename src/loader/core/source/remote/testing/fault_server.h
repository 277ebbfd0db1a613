// A web server inside a unit test, which answers what the test wants, also half or not at all.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace fullbore::loader::remote::testing {

struct ServedRequest {
  std::string method, path;
  std::map<std::string, std::string> headers;  // names in lower case
};

struct ServedAnswer {
  int status = 200;
  std::map<std::string, std::string> headers = {};  // Content-Length is added where it is missing
  std::string body = {};
  std::optional<size_t> cut_after = std::nullopt;  // bytes of the body; then the connection is closed
  bool hold = false;                               // silence after that, until the server goes
};

// One thread a connection, all of them joined at the end.
class FaultServer {
 public:
  using Handler = std::function<ServedAnswer(const ServedRequest&)>;
  explicit FaultServer(Handler handler);
  ~FaultServer();

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<ServedRequest> requests() const;

 private:
  void Accept();
  void Serve(int fd);
  bool Send(int fd, const ServedRequest& request, const ServedAnswer& answer);

  const Handler handler_;
  UniqueFd listening_;
  int port_ = 0;
  mutable std::mutex mutex_;  // protects what follows
  std::condition_variable ending_;
  bool ends_ = false;
  std::vector<ServedRequest> requests_;
  std::list<UniqueFd> connections_;
  std::list<std::thread> threads_;
  std::thread acceptor_;
};

// What a good server answers for an object: a 206 for a range of it, 412 for another If-Match.
ServedAnswer ServeObject(const ServedRequest& request, const std::string& data, const std::string& etag);

}  // namespace fullbore::loader::remote::testing
