// The sockets of `serve`: one thread, one epoll, everything bounded. Not a library: src/serve/http.h says how little of
// HTTP is spoken.
//
// cpp-httplib was rejected: it gives each connection a thread for as long as the client likes, and its queue of those
// that wait has no end, so that a few dozen slow clients stop it. Here a slow client costs a descriptor and its own
// bytes, and the oldest one makes room when a new one needs it.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/fd.h"
#include "base/result.h"
#include "serve/http.h"

namespace fullbore::serve {

struct Limits {
  size_t connections = 256;                // the one that has waited longest for its request makes room
  int64_t request_ns = 10'000'000'000;     // for all of a request to arrive
  int64_t answer_ns = 60'000'000'000;      // for an answer that comes later
  int64_t stalled_ns = 30'000'000'000;     // without taking a byte of an answer
  size_t unsent_bytes = 64 << 20;          // of all answers together; a longer one is refused for good (507)
  size_t unsent_stream_bytes = 256 << 10;  // of one stream: who reads more slowly is sent away
};

class Server {
 public:
  using Handler = std::function<Response(const Request&)>;

  // `address` is "127.0.0.1:7788", "[::1]:7788", "host:0" (any free port) or ":7788" (every address).
  static Result<std::unique_ptr<Server>> Listen(const std::string& address, Handler handler,
                                                Limits limits = {});

  int fd() const { return epoll_.get(); }                  // readable when Serve() has something to do
  const std::string& address() const { return address_; }  // with the port that it got

  // Does what is to be done, without waiting.
  void Serve(int64_t now_ns);
  // Somebody's answer comes later: Serve() is to be called again soon, whatever fd() says.
  bool waits() const { return waiting_ > 0; }
  // To all who listen to that stream: an event of server-sent events. `data` has no line breaks.
  void Publish(const std::string& stream, std::string_view event, std::string_view data);
  bool HasListeners(const std::string& stream) const;
  size_t connections() const { return connections_.size(); }

 private:
  struct Connection {
    UniqueFd fd;
    std::string in;
    std::string head;                         // and for a stream, its events
    std::shared_ptr<const std::string> body;  // after the head
    size_t sent = 0;                          // of both
    std::string stream;
    bool answered = false;
    std::optional<Request> waiting;  // for an answer that comes later
    int64_t since_ns = 0;            // it came, asked for what comes later, or last took bytes
    size_t unsent() const { return head.size() + (body ? body->size() : 0) - sent; }
  };
  using Connections = std::list<Connection>;

  Server(Handler handler, Limits limits) : handler_(std::move(handler)), limits_(limits) {}
  void Accept(int64_t now_ns);
  void MakeRoom();
  void Read(Connections::iterator connection, int64_t now_ns);
  void Answer(Connection& connection, Response response, bool head_only);
  void Ask(Connections::iterator connection, const Request& request, int64_t now_ns);
  void AskAgain(int64_t now_ns);
  void Write(Connections::iterator connection, int64_t now_ns);
  void Await(const Connection& connection);
  void Close(Connections::iterator connection);
  void CloseLate(int64_t now_ns);

  Handler handler_;
  Limits limits_;
  std::string address_;
  UniqueFd listener_, epoll_;
  Connections connections_;  // oldest first
  std::unordered_map<int, Connections::iterator> by_fd_;
  int64_t next_sweep_ns_ = 0;
  size_t waiting_ = 0;
};

}  // namespace fullbore::serve
