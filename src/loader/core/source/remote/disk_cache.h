// Remote files on the local disk, in chunks, for all processes of
// a machine: a chunk that several of them need is fetched once.
//
//   DIRECTORY/chunks-1/ab/cdef...   a chunk; the name is the SHA-256 of URL, version, length and place
//   DIRECTORY/chunks-1/lock, usage  see cache_lock.h, cache_space.h
//
// A chunk is 8 MiB: AWS advises requests of 8 to 16 MB (Performance Design Patterns for Amazon S3), because 8
// MB at 100 MB/s take longer than the response takes to begin; more would only delay the first sample. It
// also serves as read-ahead: the neighbours of a sample in its shard come with it.
//
// The version is part of the name, so that a changed file counts as a different one; files without a version
// are not cached. A failure of this disk disables the cache, never the training: the cache stops writing with
// one message, and reads bypass it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "loader/core/source/remote/cache_chunk.h"
#include "loader/core/source/remote/cache_space.h"
#include "loader/core/source/remote/cancellation.h"
#include "loader/core/source/remote/message_log.h"
#include "loader/core/store.h"

namespace fullbore::loader::remote {

struct DiskCacheOptions {
  std::string directory;     // created if missing
  uint64_t limit_bytes = 0;  // of everything cached there
  uint64_t chunk_bytes = 8 << 20;
  double patience_s = 30;  // how long another process that fetches our chunk may make no progress
  // The system's; tests use one that fails.
  std::function<ssize_t(int fd, const void* data, size_t bytes, off_t offset)> write;
};

// $XDG_CACHE_HOME/fullbore, else ~/.cache/fullbore; empty if neither is known.
std::string DefaultCacheDirectory();

// Thread-safe.
class DiskCache {
 public:
  // Fetches `bytes` of the file from `offset` into a sink, in order. The sink returns false to stop.
  using Sink = std::function<bool(std::span<const uint8_t>)>;
  using Fetch = std::function<Result<void>(uint64_t offset, uint64_t bytes, const Sink& sink)>;

  DiskCache(DiskCacheOptions options, MessageLog& log);

  // Reads a part of one chunk (`out` must not extend beyond ChunkEnd(offset)). `identity` names the file for
  // the cache. False: not in the cache, read it directly. Errors are those of `fetch`.
  Result<bool> Read(const std::string& identity, const StoredFile& file, uint64_t offset,
                    std::span<uint8_t> out, const Fetch& fetch, const Cancellation::Token& token);
  uint64_t ChunkEnd(uint64_t offset) const {
    return (offset / options_.chunk_bytes + 1) * options_.chunk_bytes;
  }

  // After a Cancellation: wakes threads that wait for chunks.
  void Wake();

 private:
  struct Chunk {  // which one, and its place
    ChunkKey key;
    std::string name, path;
    uint64_t offset = 0, bytes = 0;
  };
  struct Flight {  // a chunk that a thread of this process is fetching
    bool ended = false, cancelled = false;
    Result<std::shared_ptr<ChunkFile>> outcome = std::shared_ptr<ChunkFile>();
  };
  // Empty pointers: read directly.
  using Outcome = Result<std::shared_ptr<ChunkFile>>;

  Chunk Locate(const std::string& identity, const StoredFile& file, uint64_t offset) const;
  // Fetches a chunk after `chunk` in a thread that would otherwise only wait for `chunk`, so that a shard
  // that is read from beginning to end arrives over as many connections as there are threads reading it.
  std::optional<Chunk> ChunkToBringMeanwhile(const std::string& identity, const StoredFile& file,
                                             const Chunk& chunk);
  Outcome Get(const Chunk& chunk, const Fetch& fetch, const Cancellation::Token& token);
  Outcome Bring(const Chunk& chunk, const Fetch& fetch, const Cancellation::Token& token);
  Outcome FetchToDisk(const Chunk& chunk, const Fetch& fetch, const Cancellation::Token& token);
  std::shared_ptr<ChunkFile> OpenCached(const Chunk& chunk);
  std::optional<CacheLock> WaitForLock(uint64_t place, const std::string& progress_path,
                                       const Cancellation::Token& token);
  Result<UniqueFd> CreatePart(const std::string& path, uint64_t bytes, const Cancellation::Token& token);
  Result<void> Write(int fd, std::span<const uint8_t> data, uint64_t offset) const;
  void Remember(const Chunk& chunk, std::shared_ptr<ChunkFile> file);
  void Forget(const Chunk& chunk);
  void StopWriting(const Error& error);

  const DiskCacheOptions options_;
  MessageLog& log_;
  const std::string root_, lock_path_;
  bool usable_ = true;  // constant after construction
  std::atomic<bool> writing_{true};

  std::mutex space_mutex_;  // taken before the lock of kUsagePlace, which polls
  CacheSpace space_;        // protected by space_mutex_

  std::mutex mutex_;  // protects what follows
  std::condition_variable landed_;
  std::map<ChunkKey, std::shared_ptr<Flight>> flights_;
  struct Open {
    std::shared_ptr<ChunkFile> file;
    std::list<ChunkKey>::iterator use;
  };
  std::map<ChunkKey, Open> open_;
  std::list<ChunkKey> uses_;  // most recent first
};

}  // namespace fullbore::loader::remote
