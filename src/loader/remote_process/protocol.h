// The protocol between a loader in a separate process and its client, over one stream socket.
//
// A frame is a fixed header, a JSON object and raw bytes. The server answers each request of the client with
// one frame; only kRelease has no response. The samples themselves never pass through the socket: they are in
// memory that both have mapped, whose file descriptor comes with the first batch that uses it.
//
//   client                      server
//   kOpen {options} + stage  -> kDone | kFailed
//   kNext {patience_ms}      -> kBatch {fields...} + ids, valid, items | kEnd | kNotYet | kFailed
//   kSetEpoch, kRestore      -> kDone | kFailed
//   kRelease {token}
//
// Every response carries the state after it and new messages, bad samples and statistics, so that the client
// knows the position of the iteration when the server is gone. A closed socket ends the server.
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

  // kUnavailable: the other end is gone. Sends `fds`, which the caller still owns.
  Result<void> Send(FrameKind kind, const nlohmann::json& about, std::string_view bytes = {},
                    const std::vector<int>& fds = {});
  // Never waits: what does not fit in the socket goes out with the next frame. The other end may itself be
  // waiting for room, and thus for us to read, while our caller holds a lock that our reader needs.
  Result<void> SendWithoutWaiting(FrameKind kind, const nlohmann::json& about);
  // Empty if nothing came within `patience` (negative: no limit). kUnavailable: the other end is gone.
  Result<std::optional<Frame>> Receive(std::chrono::milliseconds patience);
  // Closes the socket for the other end and for any thread waiting in Receive here.
  void Shutdown();

 private:
  Result<void> SendUnsent(int flags);

  UniqueFd fd_;
  std::string unsent_;  // whole frames, except that the first may be partly sent
};

nlohmann::json ErrorToJson(const Error& error);
Error ErrorFromJson(const nlohmann::json& about);
nlohmann::json StatsToJson(const LoaderStats& stats);
LoaderStats StatsFromJson(const nlohmann::json& about);

}  // namespace fullbore::loader
