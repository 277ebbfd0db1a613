#include "loader/core/source/remote/testing/fault_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace fullbore::loader::remote::testing {
namespace {

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

ServedRequest ParseRequest(std::string_view text) {
  ServedRequest request;
  const auto lines = Split(text, '\n');
  const auto words = Words(lines[0]);
  if (words.size() >= 2) request.method = words[0], request.path = words[1];
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon == std::string_view::npos) continue;
    std::string name(lines[i].substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    request.headers[name] = Trim(lines[i].substr(colon + 1));
  }
  return request;
}

}  // namespace

FaultServer::FaultServer(Handler handler) : handler_(std::move(handler)) {
  listening_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  FB_CHECK(bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), bytes) == 0);
  FB_CHECK(listen(listening_.get(), 64) == 0);
  FB_CHECK(getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &bytes) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

FaultServer::~FaultServer() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
    for (const auto& connection : connections_) shutdown(connection.get(), SHUT_RDWR);
  }
  ending_.notify_all();
  shutdown(listening_.get(), SHUT_RDWR);
  acceptor_.join();
  for (auto& thread : threads_) thread.join();
}

std::vector<ServedRequest> FaultServer::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

void FaultServer::Accept() {
  for (;;) {
    UniqueFd connection(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::lock_guard lock(mutex_);
    if (ends_ || !connection.valid()) return;
    const int fd = connection.get();
    const int on = 1;  // head and body are sent apart
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections_.push_back(std::move(connection));
    threads_.emplace_back([this, fd] {
      Serve(fd);
      shutdown(fd, SHUT_RDWR);  // closed with the server, so that its number is not given out anew
    });
  }
}

void FaultServer::Serve(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    size_t end = text.find("\r\n\r\n");
    while (end == std::string::npos) {
      const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
      if (n <= 0) return;
      text.append(buffer, static_cast<size_t>(n));
      end = text.find("\r\n\r\n");
    }
    const auto request = ParseRequest(std::string_view(text).substr(0, end));
    text.erase(0, end + 4);
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    if (!Send(fd, request, handler_(request))) return;
  }
}

bool FaultServer::Send(int fd, const ServedRequest& request, const ServedAnswer& answer) {
  std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " x\r\n";
  for (const auto& [name, value] : answer.headers) head += name + ": " + value + "\r\n";
  if (!answer.headers.contains("Content-Length")) {
    head += "Content-Length: " + std::to_string(answer.body.size()) + "\r\n";
  }
  const size_t sent_bytes = request.method == "HEAD" ? 0 : answer.cut_after.value_or(answer.body.size());
  if (!SendAll(fd, head + "\r\n") || !SendAll(fd, std::string_view(answer.body).substr(0, sent_bytes)))
    return false;
  if (answer.hold) {
    std::unique_lock lock(mutex_);
    ending_.wait(lock, [this] { return ends_; });
  }
  return !answer.cut_after;
}

ServedAnswer ServeObject(const ServedRequest& request, const std::string& data, const std::string& etag) {
  ServedAnswer answer;
  answer.headers["ETag"] = etag;
  const auto if_match = request.headers.find("if-match");
  if (if_match != request.headers.end() && if_match->second != etag) return {.status = 412};
  answer.body = data;
  const auto range = request.headers.find("range");
  if (range == request.headers.end()) return answer;
  const std::string_view numbers = std::string_view(range->second).substr(6);  // behind "bytes="
  const size_t dash = numbers.find('-');
  const auto first = static_cast<size_t>(*ParseInt(numbers.substr(0, dash)));
  const auto last = std::min(static_cast<size_t>(*ParseInt(numbers.substr(dash + 1))), data.size() - 1);
  answer.status = 206;
  answer.body = data.substr(first, last - first + 1);
  answer.headers["Content-Range"] =
      "bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" + std::to_string(data.size());
  return answer;
}

}  // namespace fullbore::loader::remote::testing
