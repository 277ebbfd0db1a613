#include "mcp/loop.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/clock.h"

namespace fullbore::mcp {

namespace {

constexpr int kBusyMs = 50;  // between two looks at what runs
constexpr int64_t kPatienceNs = 30 * kNsPerSecond;

// Waits for a client that reads slowly, until we are asked to end: in pieces that a pipe takes whole, so that no write
// blocks. Where the client is gone, the next read says so.
void WriteAll(int fd, int signals, std::string_view text) {
  pollfd ready[] = {{signals, POLLIN, 0}, {fd, POLLOUT, 0}};
  while (!text.empty()) {
    if (poll(ready, std::size(ready), -1) < 0 && errno != EINTR) return;
    if (ready[0].revents != 0) return;
    const ssize_t written = write(fd, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

// False at the end of the input.
bool ReadSome(int fd, Lines& lines, Server& server) {
  char bytes[64 << 10];
  const ssize_t got = read(fd, bytes, sizeof bytes);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  for (const Lines::Line& line : lines.Add({bytes, static_cast<size_t>(got)})) server.Take(line);
  return got > 0;
}

}  // namespace

void Serve(ServerOptions options, Starter& starter, int input, int output, int signals) {
  Server server(std::move(options), starter,
                [=](const Json& message) { WriteAll(output, signals, LineOf(message)); });
  Lines lines;
  pollfd ready[] = {{signals, POLLIN, 0}, {input, POLLIN, 0}};
  while (true) {
    const int count = poll(ready, std::size(ready), server.busy() ? kBusyMs : -1);
    server.Tick(MonotonicNs());
    if (count <= 0) continue;
    if (ready[0].revents != 0) break;
    if (ready[1].revents != 0 && !ReadSome(input, lines, server)) break;
  }
  const int64_t begin_ns = MonotonicNs();
  server.StopAll(begin_ns);
  while (server.busy() && MonotonicNs() - begin_ns < kPatienceNs) {
    (void)poll(nullptr, 0, kBusyMs);
    server.Tick(MonotonicNs());
  }
}

}  // namespace fullbore::mcp
