// Reading without the disk cache: sequential reads share requests, random reads get one each.
//
// Works like the kernel's read-ahead: the first sequential reads get a small window, each further one twice
// as much, up to the size of a chunk. Random reads get exactly what they ask for.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "loader/core/source/remote/cancellation.h"
#include "loader/core/store.h"

namespace fullbore::loader::remote {

// Thread-safe.
class ReadAhead {
 public:
  using Fetch = std::function<Result<void>(uint64_t offset, std::span<uint8_t> out)>;

  static constexpr uint64_t kFirstBytes = 256 * 1024, kMaxBytes = 8 << 20;
  static constexpr size_t kMaxFiles = 16;  // read at the same time; together at most 128 MiB of windows

  Result<void> Read(const StoredFile& file, uint64_t offset, std::span<uint8_t> out, const Fetch& fetch,
                    const Cancellation::Token& token);
  void Wake();  // after a Cancellation

 private:
  struct Window {
    uint64_t begin = 0, end = 0;
    std::vector<uint8_t> bytes;
    bool ended = false;
    Result<void> outcome;
    bool Holds(uint64_t offset, uint64_t size) const { return offset >= begin && offset + size <= end; }
  };
  struct File {
    std::shared_ptr<Window> window;  // the newest
    uint64_t next = 0;               // where the furthest read of this sequence ended
    uint64_t window_bytes = 0;       // 0: no two reads were sequential yet
    std::list<std::string>::iterator use;
  };

  File& Find(const std::string& name);
  std::shared_ptr<Window> WindowFor(const StoredFile& file, uint64_t offset, uint64_t size, bool& ours);

  std::mutex mutex_;  // protects what follows
  std::condition_variable landed_;
  std::map<std::string, File> files_;
  std::list<std::string> uses_;  // most recent first
};

}  // namespace fullbore::loader::remote
