// Files of this machine. Descriptors of files that are read in parts (shards) stay open, up to a limit. Files
// are never mapped, because truncating a mapped file raises SIGBUS.
#pragma once

#include <list>
#include <mutex>
#include <unordered_map>

#include "base/fd.h"
#include "loader/core/store.h"

namespace fullbore::loader {

class LocalStore : public Store {
 public:
  LocalStore();

  Result<std::vector<StoredFile>> List(const std::string& prefix) override;
  Result<StoredFile> Stat(const std::string& path) override;
  // A file that is replaced while it is open here is still read as it was; one changed in place is kCorrupt.
  Result<void> Read(const StoredFile& file, uint64_t offset, std::span<uint8_t> out) override;
  Result<size_t> ReadWhole(const std::string& path, std::vector<uint8_t>& out) override;
  Result<void> Walk(const std::string& prefix, const WalkVisitor& visit) override;

  size_t open_files() const;

 private:
  struct OpenFile {
    UniqueFd fd;
    StoredFile stored;
    int64_t modified_ns = 0;
  };
  struct Slot {
    std::shared_ptr<const OpenFile> file;
    std::list<const std::string*>::iterator use;
  };

  Result<std::shared_ptr<const OpenFile>> OpenedFile(const StoredFile& file);

  const size_t most_open_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Slot> open_;  // by path; the rest by mutex_ too
  std::list<const std::string*> uses_;          // most recent first; points to open_'s keys
};

}  // namespace fullbore::loader
