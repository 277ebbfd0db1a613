// What the two ends of a loader in a process of its own say to each other, over one stream socket.
//
// A frame is a fixed head, a JSON object and raw bytes. The client asks, the server answers each question
// with one frame; only kRelease has no answer. The samples themselves never pass through the socket: they lie
// in memory that both have mapped, a file descriptor of which comes with the first batch that uses it.
//
//   client                      server
//   kOpen {options} + stage  -> kDone | kFailed
//   kNext {patience_ms}      -> kBatch {fields...} + ids, valid, items | kEnd | kNotYet | kFailed
//   kSetEpoch, kRestore      -> kDone | kFailed
//   kRelease {token}
//
// Every answer carries the state after it and what is new of messages, bad samples and statistics, so that
// the client can say where the iteration stands when the server is gone. A closed socket ends the server.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "fullbore/loader.h"

namespace fullbore::loader {

enum class FrameKind : uint32_t {
  kOpen,
  kNext,
  kSetEpoch,
  kRestore,
  kRelease,
  kDone,
  kBatch,
  kEnd,
  kNotYet,
  kFailed,
};

struct Frame {
  FrameKind kind = FrameKind::kDone;
  nlohmann::json about = nlohmann::json::object();
  std::string bytes;
  std::vector<UniqueFd> fds;
};

// One end of the socket. Sending and receiving may be in different threads, each in one at a time.
class FrameSocket {
 public:
  explicit FrameSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  // kUnavailable: the other end is gone. `fds` are sent, and stay the caller's.
  Result<void> Send(FrameKind kind, const nlohmann::json& about, std::string_view bytes = {},
                    const std::vector<int>& fds = {});
  // Never waits: what the socket has no room for goes out with the next frame. The other end may itself wait
  // for room, and for us to read, while our caller holds what our reader needs.
  Result<void> SendWithoutWaiting(FrameKind kind, const nlohmann::json& about);
  // Empty when nothing has come after `patience` (negative: waits). kUnavailable: the other end is gone.
  Result<std::optional<Frame>> Receive(std::chrono::milliseconds patience);
  // The other end, and whoever waits in Receive here, finds the socket closed.
  void Shutdown();

 private:
  Result<void> SendUnsent(int flags);

  UniqueFd fd_;
  std::string unsent_;  // whole frames, but for a first part that is out
};

nlohmann::json ErrorToJson(const Error& error);
Error ErrorFromJson(const nlohmann::json& about);
nlohmann::json StatsToJson(const LoaderStats& stats);
LoaderStats StatsFromJson(const nlohmann::json& about);

}  // namespace fullbore::loader
