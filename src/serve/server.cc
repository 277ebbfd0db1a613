#include "serve/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.h"
#include "base/text.h"

namespace fullbore::serve {

namespace {

constexpr int kBacklog = 512;
constexpr int kAcceptsAtOnce = 64;
constexpr int64_t kSweepNs = kNsPerSecond;

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first) freeaddrinfo(first);
  }
};

Error CannotListen(const std::string& address, const std::string& why, const std::string& hint = "") {
  return {ErrorCode::kInvalidArgument, fmt::format("cannot listen on '{}': {}", address, why), hint};
}

// "127.0.0.1" and "7788"; the brackets of an IPv6 address are taken off.
Result<std::pair<std::string, std::string>> HostAndPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : ParseInt(address.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535)
    return CannotListen(address, "it is not an address and a port", "for instance 127.0.0.1:7788");
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return std::pair(host, address.substr(colon + 1));
}

std::string NameOf(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "";
  return bound.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<UniqueFd> ListeningSocket(const std::string& address) {
  const auto where = HostAndPort(address);
  if (!where) return where.error();
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  AddressList found;
  const char* const host = where->first.empty() ? nullptr : where->first.c_str();  // ":9400": every address
  const int code = getaddrinfo(host, where->second.c_str(), &wanted, &found.first);
  if (code != 0) return CannotListen(address, gai_strerror(code));
  UniqueFd fd(socket(found.first->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (fd.valid()) (void)setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!fd.valid() || bind(fd.get(), found.first->ai_addr, found.first->ai_addrlen) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    const int why = errno;
    return CannotListen(address, ErrnoError("", why).text.substr(2),
                        why == EADDRINUSE ? "--listen 127.0.0.1:0 takes any free port" : "");
  }
  return fd;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Listen(const std::string& address, Handler handler, Limits limits) {
  std::unique_ptr<Server> server(new Server(std::move(handler), limits));
  auto listener = ListeningSocket(address);
  if (!listener) return listener.error();
  server->listener_ = std::move(*listener);
  server->address_ = NameOf(server->listener_.get());
  server->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = server->listener_.get();
  if (!server->epoll_.valid() ||
      epoll_ctl(server->epoll_.get(), EPOLL_CTL_ADD, server->listener_.get(), &event) != 0)
    return ErrnoError("cannot wait for connections", errno);
  return server;
}

void Server::Serve(int64_t now_ns) {
  std::array<epoll_event, 64> events{};
  const int ready = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.fd == listener_.get()) {
      Accept(now_ns);
      continue;
    }
    const auto found = by_fd_.find(event.data.fd);
    if (found == by_fd_.end()) continue;  // closed to make room
    if (event.events & (EPOLLERR | EPOLLHUP))
      Close(found->second);
    else if (event.events & EPOLLIN)
      Read(found->second, now_ns);
    else
      Write(found->second, now_ns);
  }
  if (waiting_ > 0) AskAgain(now_ns);
  if (now_ns >= next_sweep_ns_) CloseLate(now_ns);
}

void Server::Accept(int64_t now_ns) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) return;  // none left, or no descriptor: the sweep frees some
    if (connections_.size() >= limits_.connections) MakeRoom();
    Connection& connection = connections_.emplace_back();
    connection.fd = std::move(fd);
    connection.since_ns = now_ns;
    by_fd_[connection.fd.get()] = std::prev(connections_.end());
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = connection.fd.get();
    (void)epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.fd.get(), &event);
  }
}

// The oldest of those that still owe us their request; without one, the oldest of all.
void Server::MakeRoom() {
  auto oldest = std::ranges::find_if(connections_, [](const Connection& each) { return !each.answered; });
  Close(oldest == connections_.end() ? connections_.begin() : oldest);
}

void Server::Read(Connections::iterator connection, int64_t now_ns) {
  std::array<char, 8192> bytes{};
  const ssize_t got = recv(connection->fd.get(), bytes.data(), bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return Close(connection);
  if (connection->answered) return;  // what comes after the request is not listened to
  connection->in.append(bytes.data(), static_cast<size_t>(got));
  Parsed parsed = Parse(connection->in);
  if (parsed.state == Parsed::State::kMore) return;
  connection->in = std::string();
  if (parsed.state != Parsed::State::kRefused) return Ask(connection, parsed.request, now_ns);
  Answer(*connection, std::move(parsed.refusal), parsed.request.method == "HEAD");
  Write(connection, now_ns);
}

void Server::Ask(Connections::iterator connection, const Request& request, int64_t now_ns) {
  Response response = handler_(request);
  const bool waited = connection->waiting.has_value();
  if (response.later && waited && now_ns - connection->since_ns > limits_.answer_ns)
    response = Response::Failure(503, "the answer takes too long", "try again later");
  if (response.later) {
    if (waited) return;
    connection->answered = true;
    connection->since_ns = now_ns;
    connection->waiting = request;
    ++waiting_;
    return;
  }
  const bool head_only = request.method == "HEAD";
  if (waited) --waiting_;
  connection->waiting.reset();  // `request` may be it
  connection->since_ns = now_ns;
  Answer(*connection, std::move(response), head_only);
  Write(connection, now_ns);
}

void Server::AskAgain(int64_t now_ns) {
  for (auto at = connections_.begin(); at != connections_.end();) {
    const auto each = at++;
    if (each->waiting) Ask(each, *each->waiting, now_ns);
  }
}

void Server::Answer(Connection& connection, Response response, bool head_only) {
  connection.answered = true;
  const size_t bytes = response.body ? response.body->size() : 0;
  size_t unsent = 0;
  for (const Connection& each : connections_) unsent += each.unsent();
  if (bytes > limits_.unsent_bytes) {
    response = Response::Failure(507,
                                 fmt::format("the answer takes {}, and this server keeps at most {}",
                                             FormatBytes(static_cast<double>(bytes)),
                                             FormatBytes(static_cast<double>(limits_.unsent_bytes))),
                                 "ask for less of it, or read the run's file itself: fullbore explain RUN");
  } else if (unsent + bytes > limits_.unsent_bytes) {
    response = Response::Failure(503, "too many answers wait to be taken", "try again");
  }
  connection.head = HeadOf(response);
  if (head_only) return;  // it has been told all, of a stream, too
  connection.stream = std::move(response.stream);
  connection.body = std::move(response.body);
}

void Server::Write(Connections::iterator connection, int64_t now_ns) {
  while (connection->unsent() > 0) {
    const bool in_head = connection->sent < connection->head.size();
    const std::string& part = in_head ? connection->head : *connection->body;
    const size_t at = connection->sent - (in_head ? 0 : connection->head.size());
    const ssize_t put = send(connection->fd.get(), part.data() + at, part.size() - at, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return Await(*connection);
    if (put < 0) return Close(connection);
    connection->sent += static_cast<size_t>(put);
    connection->since_ns = now_ns;
  }
  if (connection->stream.empty()) return Close(connection);
  connection->head.clear();
  connection->body.reset();
  connection->sent = 0;
  Await(*connection);
}

void Server::Await(const Connection& connection) {
  epoll_event event{};
  event.events = connection.unsent() > 0 ? EPOLLOUT : EPOLLIN;
  event.data.fd = connection.fd.get();
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd.get(), &event);
}

// What the client still sends is taken, or it would be told of a broken connection instead of the answer.
void Server::Close(Connections::iterator connection) {
  (void)shutdown(connection->fd.get(), SHUT_WR);
  std::array<char, 8192> ignored{};
  for (int i = 0; i < 32; ++i) {
    if (recv(connection->fd.get(), ignored.data(), ignored.size(), 0) <= 0) break;
  }
  if (connection->waiting) --waiting_;
  by_fd_.erase(connection->fd.get());
  connections_.erase(connection);
}

void Server::CloseLate(int64_t now_ns) {
  next_sweep_ns_ = now_ns + kSweepNs;
  for (auto at = connections_.begin(); at != connections_.end();) {
    const auto each = at++;
    const int64_t waited_ns = now_ns - each->since_ns;
    if (!each->answered && waited_ns > limits_.request_ns) {
      Answer(*each, Response::Failure(408, "the request took too long to arrive"), false);
      Write(each, now_ns);
    } else if (each->unsent() > 0 && waited_ns > limits_.stalled_ns) {
      Close(each);
    }
  }
}

void Server::Publish(const std::string& stream, std::string_view event, std::string_view data) {
  const std::string text = fmt::format("event: {}\ndata: {}\n\n", event, data);
  const int64_t now_ns = MonotonicNs();
  for (auto at = connections_.begin(); at != connections_.end();) {
    const auto each = at++;
    if (each->stream != stream) continue;
    if (each->unsent() + text.size() > limits_.unsent_stream_bytes) {
      Close(each);
      continue;
    }
    if (each->unsent() == 0) each->since_ns = now_ns;
    if (each->body) {  // its head and first event are still on their way
      each->head += *each->body;
      each->body.reset();
    }
    each->head += text;
    Write(each, now_ns);
  }
}

bool Server::HasListeners(const std::string& stream) const {
  return std::ranges::any_of(connections_, [&](const Connection& each) { return each.stream == stream; });
}

}  // namespace fullbore::serve
