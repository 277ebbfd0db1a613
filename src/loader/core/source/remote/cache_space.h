// How much of the disk the cache takes: one count for all processes that share the directory, and eviction of
// the least recently used chunks.
//
// The count is in a file of its own and is changed under a lock. It may be too high (a process died between
// counting and writing), never too low; each eviction counts the files again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "loader/core/source/remote/cache_lock.h"

namespace fullbore::loader::remote {

class CacheSpace {
 public:
  static constexpr const char* kPartSuffix = ".part";  // of a chunk that is being written
  static constexpr uint64_t kUsagePlace = 0;           // in the lock file

  // Manages files in `directory`/xx/; their writers lock them by `lock_path` and `place_of`.
  CacheSpace(std::string directory, uint64_t limit_bytes, std::string lock_path,
             std::function<uint64_t(const std::string& name)> place_of)
      : directory_(std::move(directory)),
        limit_bytes_(limit_bytes),
        lock_path_(std::move(lock_path)),
        place_of_(std::move(place_of)) {}

  // Creates an empty file with room for `bytes` and replaces any leftovers. Evicts others to stay within the
  // limit. The caller holds the lock of the file, and that of kUsagePlace.
  Result<UniqueFd> Create(const std::string& path, uint64_t bytes);

 private:
  uint64_t CountAndEvict(uint64_t bytes);  // what is left afterwards

  const std::string directory_;
  const uint64_t limit_bytes_;
  const std::string lock_path_;
  const std::function<uint64_t(const std::string&)> place_of_;
  bool counted_ = false;  // by this process; under the lock
};

}  // namespace fullbore::loader::remote
