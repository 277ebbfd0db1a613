// A Loader whose threads run in a separate process, so that a training process with one interpreter lock, or
// one that counts its threads, is left undisturbed. Batches are in memory that both processes have mapped.
//
// A process that dies is restarted at the position of the iteration, with a message; batches that were handed
// out stay readable. The process ends with the RemoteLoader, or when the process that owns it dies.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/loader.h"

namespace fullbore::loader {

struct ProcessOptions {
  // Gets the number of a socket as its last argument, and must call ServeLoader on it.
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // in addition to this process's
  std::string user_stage;                          // for the server's StageFactory; empty: no user stage
  int max_restarts = 3;
};

// Like Loader, with two differences: Stats, messages and bad samples are those
// of the last response, and a forked child must not touch it. One thread
// iterates; Stats, TakeMessages and Stop may be called from any other.
class RemoteLoader {
 public:
  static Result<RemoteLoader> Open(const LoaderOptions& options, const ProcessOptions& process);
  RemoteLoader(RemoteLoader&&) noexcept;
  RemoteLoader& operator=(RemoteLoader&&) noexcept;
  ~RemoteLoader();

  Result<std::optional<Batch>> Next();
  Result<std::optional<Batch>> Next(std::chrono::milliseconds patience);
  void SetEpoch(uint64_t epoch);
  LoaderState State() const;
  Result<void> Restore(const LoaderState& state);
  void Stop();

  uint64_t samples() const;
  uint64_t batches_per_epoch() const;
  const std::vector<std::string>& class_names() const;
  LoaderStats Stats() const;
  std::vector<Message> TakeMessages();
  std::vector<BadSample> bad_samples() const;
  pid_t pid() const;  // of the process now at work

 private:
  class Client;
  explicit RemoteLoader(std::shared_ptr<Client> client);
  std::shared_ptr<Client> client_;
};

}  // namespace fullbore::loader
