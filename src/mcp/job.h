// What the server starts: a subcommand of this very program, with all that descends from it behind a keeper, so that
// nothing is left of it whatever happens. It reads nothing, and what it prints stays here: standard output is the
// server's alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/temporary_directory.h"
#include "mcp/tool.h"
#include "measure/isolate/keeper.h"

namespace fullbore::mcp {

// What became of a call.
struct Ended {
  int status = 0;              // as a shell reports it
  std::string output, errors;  // as much of them as is kept
  std::string json;            // of --json; empty where there is none
};

class Job {
 public:
  virtual ~Job() = default;
  // Reads what there is to read, without waiting; the end once it has ended.
  virtual std::optional<Ended> Tick(int64_t now_ns) = 0;
  // Asks it to end. Some seconds later it is ended, with all that it started.
  virtual void Stop(int64_t now_ns) = 0;
  virtual std::string last_line() const = 0;  // of what it says while it works
};

// Starts jobs: this machine, or what stands in for it in a test.
class Starter {
 public:
  virtual ~Starter() = default;
  virtual Result<std::unique_ptr<Job>> Start(const Call& call) = 0;
};

class ProcessStarter : public Starter {
 public:
  explicit ProcessStarter(std::string program) : program_(std::move(program)) {}
  Result<std::unique_ptr<Job>> Start(const Call& call) override;

 private:
  const std::string program_;
};

}  // namespace fullbore::mcp
