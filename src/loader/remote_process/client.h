// A Loader whose threads live in a process of their own: a training process that holds one interpreter lock,
// or counts its threads, keeps its cores to itself. Batches lie in memory that both have mapped.
//
// A process that dies is started again where the iteration stood, with a message; batches that were handed
// out stay readable. The process ends when the RemoteLoader does, and when the process that has it dies.
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
  // Is started with the number of a socket as its last argument, and calls ServeLoader on it.
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // in addition to this process's
  std::string user_stage;                          // for the server's StageFactory; empty: no user's stage
  int max_restarts = 3;
};

// As Loader's, with two differences: Stats, messages and bad samples are
// those of the last answer, and a forked child must not touch it. One thread
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
