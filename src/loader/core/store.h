// Bytes by name: containers are read through this interface, so
// that each works from local disk, HTTP(S) and S3 alike.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/loader.h"

namespace fullbore::loader {

struct StoredFile {
  std::string path;  // as given to the other calls: a local path or a URL
  uint64_t bytes = 0;
  // Changes when the content does (device, inode, size and modification time; an ETag). Empty: unknown.
  std::string version;
};

// Thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  // All files below a directory or prefix, sorted by path.
  virtual Result<std::vector<StoredFile>> List(const std::string& prefix) = 0;
  virtual Result<StoredFile> Stat(const std::string& path) = 0;

  // Fills all of `out` from `offset`, or fails: kNotFound, kCorrupt if the file
  // ends before that, kUnavailable if the server failed after all retries. If
  // `version` is not empty and the file has changed since: kCorrupt.
  virtual Result<void> Read(const StoredFile& file, uint64_t offset, std::span<uint8_t> out) = 0;

  // Reads a whole file of unknown size. Grows `out` if it is too small and never shrinks it, so that a
  // reused buffer is not cleared again; returns how many bytes of it are the file. Here: Stat, then Read.
  virtual Result<size_t> ReadWhole(const std::string& path, std::vector<uint8_t>& out);

  // The names of all files below a directory or prefix, in any order, without their sizes, which may cost
  // a system call each. `directory` is relative to `prefix` and empty for `prefix` itself; an empty `name`
  // reports a directory, which may have no files. Links are followed. Here: List.
  using WalkVisitor = std::function<void(std::string_view directory, std::string_view name)>;
  virtual Result<void> Walk(const std::string& prefix, const WalkVisitor& visit);

  virtual void Cancel() {}
  virtual std::vector<Message> TakeMessages() { return {}; }
};

// Local paths and file:// go to the local store, http(s):// and s3:// to theirs, behind the disk cache.
Result<std::shared_ptr<Store>> OpenStore(const std::string& path_or_url, const SourceOptions& options);

// Expands "{000..012}" (as bash does: zeros in front keep the width) and, for local paths, "*" and "?", whose
// matches are sorted bytewise. A local path that exists as written is taken literally. kNotFound if a "*"
// matches nothing. file:// is removed.
Result<std::vector<std::string>> ExpandPaths(const std::vector<std::string>& patterns);

}  // namespace fullbore::loader
