// The client's side of one server process: the process, the socket, and the server's memory mapped here.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "fullbore/loader.h"
#include "loader/remote_process/client.h"
#include "loader/remote_process/protocol.h"

namespace fullbore::loader {

// A block of the server's memory, mapped here; unmapped with its last batch, even after the server's end.
class Mapping {
 public:
  static Result<std::shared_ptr<Mapping>> Map(int fd, size_t bytes);
  Mapping(void* data, size_t bytes) : data_(data), bytes_(bytes) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();
  char* at(size_t offset) const { return static_cast<char*>(data_) + offset; }

 private:
  void* data_;
  size_t bytes_;
};

// Shared by the client and the batches in use, which report when they are released.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  static Result<std::shared_ptr<Connection>> Start(const ProcessOptions& process);
  Connection(FrameSocket socket, pid_t pid);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  Result<void> Ask(FrameKind kind, const nlohmann::json& about, std::string_view bytes = {});
  Result<std::optional<Frame>> Answer(std::chrono::milliseconds patience) {
    return socket_.Receive(patience);
  }
  Result<Batch> ToBatch(Frame frame);
  void Shutdown();
  // Ends the process, by force if it does not end by itself, and says how it ended.
  std::string End();
  pid_t pid() const { return pid_; }

 private:
  struct HeldBatch;
  void Release(uint64_t token);

  FrameSocket socket_;
  std::mutex send_mutex_;
  pid_t pid_;
  const pid_t owner_;  // a forked child must not speak for its parent
  bool ended_ = false;
  std::map<uint64_t, std::shared_ptr<Mapping>> mappings_;  // by the server's block number
};

}  // namespace fullbore::loader
