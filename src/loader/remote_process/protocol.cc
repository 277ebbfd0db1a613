#include "loader/remote_process/protocol.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace fullbore::loader {
namespace {

using nlohmann::json;

struct Head {
  uint32_t kind = 0;
  uint32_t fds = 0;
  uint64_t about_bytes = 0;
  uint64_t bytes = 0;
};
constexpr size_t kMaxFds = 64;  // a message; SCM_MAX_FD of the kernel is 253
// More than any frame needs: a header that says more is invalid.
constexpr uint64_t kMaxFrameBytes = uint64_t{1} << 34;

Error Gone(const char* what) {
  return {ErrorCode::kUnavailable, std::string("the loader's other process is gone: ") + what, ""};
}

Result<void> SendAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return Gone(std::strerror(errno));
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return {};
}

Result<void> ReceiveAll(int fd, char* data, size_t size) {
  while (size > 0) {
    const ssize_t got = recv(fd, data, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Gone(std::strerror(errno));
    if (got == 0) return Gone("it closed the socket");
    data += got;
    size -= static_cast<size_t>(got);
  }
  return {};
}

// The head carries the descriptors, so that they arrive with its first byte.
Result<void> SendHead(int fd, const Head& head, const std::vector<int>& fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)] = {};
  iovec part = {const_cast<Head*>(&head), sizeof head};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(rights), fds.data(), sizeof(int) * fds.size());
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(fd, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent <= 0) return Gone(std::strerror(errno));
  const auto done = static_cast<size_t>(sent);
  return SendAll(fd, reinterpret_cast<const char*>(&head) + done, sizeof head - done);
}

Result<void> ReceiveHead(int fd, Head& head, std::vector<UniqueFd>& fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
  iovec part = {&head, sizeof head};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do {
    got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return Gone(std::strerror(errno));
  if (got == 0) return Gone("it closed the socket");
  for (cmsghdr* part_of = CMSG_FIRSTHDR(&message); part_of; part_of = CMSG_NXTHDR(&message, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part_of->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(part_of) + i * sizeof(int), sizeof received);
      fds.emplace_back(received);
    }
  }
  const auto done = static_cast<size_t>(got);
  return ReceiveAll(fd, reinterpret_cast<char*>(&head) + done, sizeof head - done);
}

}  // namespace

Result<void> FrameSocket::Send(FrameKind kind, const json& about, std::string_view bytes,
                               const std::vector<int>& fds) {
  FB_CHECK(fds.size() <= kMaxFds);
  const std::string text = about.dump(-1, ' ', false, json::error_handler_t::replace);
  const Head head = {static_cast<uint32_t>(kind), static_cast<uint32_t>(fds.size()), text.size(),
                     bytes.size()};
  if (auto sent = SendUnsent(0); !sent) return sent;
  if (auto sent = SendHead(fd_.get(), head, fds); !sent) return sent;
  if (auto sent = SendAll(fd_.get(), text.data(), text.size()); !sent) return sent;
  return SendAll(fd_.get(), bytes.data(), bytes.size());
}

Result<void> FrameSocket::SendWithoutWaiting(FrameKind kind, const json& about) {
  const std::string text = about.dump(-1, ' ', false, json::error_handler_t::replace);
  const Head head = {static_cast<uint32_t>(kind), 0, text.size(), 0};
  unsent_.append(reinterpret_cast<const char*>(&head), sizeof head).append(text);
  return SendUnsent(MSG_DONTWAIT);
}

Result<void> FrameSocket::SendUnsent(int flags) {
  size_t out = 0;
  while (out < unsent_.size()) {
    const ssize_t sent = send(fd_.get(), unsent_.data() + out, unsent_.size() - out, MSG_NOSIGNAL | flags);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent <= 0) {
      unsent_.clear();
      return Gone(std::strerror(errno));
    }
    out += static_cast<size_t>(sent);
  }
  unsent_.erase(0, out);
  return {};
}

Result<std::optional<Frame>> FrameSocket::Receive(std::chrono::milliseconds patience) {
  pollfd waiting = {fd_.get(), POLLIN, 0};
  const int ready = poll(&waiting, 1, patience.count() < 0 ? -1 : static_cast<int>(patience.count()));
  if (ready == 0 || (ready < 0 && errno == EINTR)) return std::optional<Frame>();
  Frame frame;
  Head head;
  if (auto got = ReceiveHead(fd_.get(), head, frame.fds); !got) return got.error();
  if (head.about_bytes > kMaxFrameBytes || head.bytes > kMaxFrameBytes || head.fds != frame.fds.size())
    return Gone("what it sent is not a frame");
  frame.kind = static_cast<FrameKind>(head.kind);
  std::string text(head.about_bytes, '\0');
  frame.bytes.resize(head.bytes);
  if (auto got = ReceiveAll(fd_.get(), text.data(), text.size()); !got) return got.error();
  if (auto got = ReceiveAll(fd_.get(), frame.bytes.data(), frame.bytes.size()); !got) return got.error();
  frame.about = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!frame.about.is_object()) return Gone("what it sent is not a frame");
  return std::optional<Frame>(std::move(frame));
}

void FrameSocket::Shutdown() { (void)shutdown(fd_.get(), SHUT_RDWR); }

json ErrorToJson(const Error& error) {
  return {{"code", static_cast<int>(error.code)}, {"text", error.text}, {"hint", error.hint}};
}

Error ErrorFromJson(const json& about) {
  return {static_cast<ErrorCode>(about.at("code").get<int>()), about.at("text"), about.at("hint")};
}

json StatsToJson(const LoaderStats& stats) {
  json stages = json::array();
  for (const StageStats& stage : stats.stages) {
    stages.push_back(
        {stage.name, stage.threads, stage.samples, stage.bytes, stage.busy_ns, stage.blocked_ns});
  }
  return {{"stages", stages},
          {"ready_batches", stats.ready_batches},
          {"ready_capacity", stats.ready_capacity},
          {"batches", stats.batches},
          {"consumer_wait_ns", stats.consumer_wait_ns},
          {"consumer_busy_ns", stats.consumer_busy_ns},
          {"pool_bytes", stats.pool_bytes},
          {"bad_samples", stats.bad_samples}};
}

LoaderStats StatsFromJson(const json& about) {
  LoaderStats stats;
  for (const json& stage : about.at("stages")) {
    stats.stages.push_back({stage[0], stage[1], stage[2], stage[3], stage[4], stage[5]});
  }
  stats.ready_batches = about.at("ready_batches");
  stats.ready_capacity = about.at("ready_capacity");
  stats.batches = about.at("batches");
  stats.consumer_wait_ns = about.at("consumer_wait_ns");
  stats.consumer_busy_ns = about.at("consumer_busy_ns");
  stats.pool_bytes = about.at("pool_bytes");
  stats.bad_samples = about.at("bad_samples");
  return stats;
}

}  // namespace fullbore::loader
