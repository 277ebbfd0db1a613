// How much of the disk the cache takes: one count for all processes that share the directory, and the
// eviction of what was used the longest ago.
//
// The count is in a file of its own and is changed under a lock. It may be too high (a process died between
// counting and writing), never too low; each eviction counts the files anew.
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

  // Files in `directory`/xx/; `lock_path` and `place_of` are how their writers lock them.
  CacheSpace(std::string directory, uint64_t limit_bytes, std::string lock_path,
             std::function<uint64_t(const std::string& name)> place_of)
      : directory_(std::move(directory)),
        limit_bytes_(limit_bytes),
        lock_path_(std::move(lock_path)),
        place_of_(std::move(place_of)) {}

  // A new empty file with room for `bytes`, in the place of any remains. Makes that room within the limit by
  // evicting others. The caller holds the lock of the file, and that of kUsagePlace.
  Result<UniqueFd> Create(const std::string& path, uint64_t bytes);

 private:
  uint64_t CountAndEvict(uint64_t bytes);  // what is left after it

  const std::string directory_;
  const uint64_t limit_bytes_;
  const std::string lock_path_;
  const std::function<uint64_t(const std::string&)> place_of_;
  bool counted_ = false;  // by this process; under the lock
};

}  // namespace fullbore::loader::remote
