#include "loader/core/source/remote/disk_cache.h"

#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/guarded_file.h"

namespace fullbore::loader::remote {
namespace {

constexpr size_t kMaxOpenChunks = 128;   // of 1,024 descriptors, a common limit per process
constexpr uint64_t kMaxChunksAhead = 3;  // 24 MiB beyond what is needed now
constexpr auto kPollEvery = std::chrono::milliseconds(10);
constexpr double kUsagePatienceS = 10;  // counting a million files takes about 2 s

std::string Sha256(const std::string& text) {
  unsigned char digest[32];
  FB_CHECK(EVP_Digest(text.data(), text.size(), digest, nullptr, EVP_sha256(), nullptr) == 1);
  return {reinterpret_cast<const char*>(digest), sizeof digest};
}

std::string Hex(const std::string& bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kHex[static_cast<unsigned char>(c) >> 4];
    out += kHex[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

// 60 bits of a chunk's name, above kUsagePlace and within off_t.
uint64_t LockPlace(const std::string& name) {
  return std::strtoull(name.substr(0, 15).c_str(), nullptr, 16) + CacheSpace::kUsagePlace + 1;
}

// Private if we create it, because the data may be private. To share the cache with chosen users, create the
// directory with the permissions for that; below it, ours are no narrower than the umask. A directory that
// everybody can write to may contain anything, and is not read.
constexpr mode_t kBelowMode = 0777;

Result<void> MakeRoot(const std::string& directory, const std::string& root) {
  if (auto made = MakeTrustedDirectory(directory, kPrivateDirectory); !made) return made;
  return MakeTrustedDirectory(root, kBelowMode);
}

// Everything that changes while a chunk is written.
int64_t ProgressOf(const std::string& path) {
  struct stat status {};
  if (path.empty() || stat(path.c_str(), &status) != 0) return 0;
  return status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec;
}

}  // namespace

std::string DefaultCacheDirectory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::string(cache) + "/fullbore";
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.cache/fullbore" : "";
}

DiskCache::DiskCache(DiskCacheOptions options, MessageLog& log)
    : options_(std::move(options)),
      log_(log),
      root_(options_.directory + "/chunks-1"),
      lock_path_(root_ + "/lock"),
      space_(root_, options_.limit_bytes, lock_path_, LockPlace) {
  if (auto made = MakeRoot(options_.directory, root_); !made) {
    usable_ = false;
    StopWriting(made.error());
  }
}

Result<bool> DiskCache::Read(const std::string& identity, const StoredFile& file, uint64_t offset,
                             std::span<uint8_t> out, const Fetch& fetch, const Cancellation::Token& token) {
  if (!usable_) return false;
  const Chunk chunk = Locate(identity, file, offset);
  // If that fails, the thread that needs the chunk will find out.
  if (const auto ahead = ChunkToBringMeanwhile(identity, file, chunk)) (void)Get(*ahead, fetch, token);
  // A second time if a chunk turns out to be damaged: it is removed and fetched again.
  for (int tries = 0; tries < 2; ++tries) {
    auto got = Get(chunk, fetch, token);
    if (!got) return got.error();
    if (*got == nullptr) return false;
    if ((*got)->Read(offset - chunk.offset, out)) return true;
    Forget(chunk);
  }
  return false;
}

std::optional<DiskCache::Chunk> DiskCache::ChunkToBringMeanwhile(const std::string& identity,
                                                                 const StoredFile& file, const Chunk& chunk) {
  std::lock_guard lock(mutex_);
  if (!flights_.contains(chunk.key) || chunk.offset == 0) return std::nullopt;
  // Only if the shard is read in order: the previous chunk is in use.
  if (!open_.contains(Locate(identity, file, chunk.offset - options_.chunk_bytes).key)) return std::nullopt;
  for (uint64_t i = 1; i <= kMaxChunksAhead; ++i) {
    const uint64_t offset = chunk.offset + i * options_.chunk_bytes;
    if (offset >= file.bytes) return std::nullopt;
    Chunk next = Locate(identity, file, offset);
    if (!open_.contains(next.key) && !flights_.contains(next.key)) return next;
  }
  return std::nullopt;
}

void DiskCache::Wake() {
  { std::lock_guard lock(mutex_); }  // any thread that checked its token before this is waiting now
  landed_.notify_all();
}

DiskCache::Chunk DiskCache::Locate(const std::string& identity, const StoredFile& file,
                                   uint64_t offset) const {
  Chunk chunk;
  chunk.offset = offset / options_.chunk_bytes * options_.chunk_bytes;
  chunk.bytes = std::min(options_.chunk_bytes, file.bytes - chunk.offset);
  std::string text;
  for (const std::string& part : {identity, file.version, std::to_string(file.bytes),
                                  std::to_string(chunk.offset), std::to_string(chunk.bytes)}) {
    text += std::to_string(part.size()) + ":" +
            part;  // so that different lists of parts never give the same text
  }
  chunk.key = Sha256(text);
  chunk.name = Hex(chunk.key);
  chunk.path = root_ + "/" + chunk.name.substr(0, 2) + "/" + chunk.name.substr(2);
  return chunk;
}

DiskCache::Outcome DiskCache::Get(const Chunk& chunk, const Fetch& fetch, const Cancellation::Token& token) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (const auto found = open_.find(chunk.key); found != open_.end()) {
      uses_.splice(uses_.begin(), uses_, found->second.use);
      return found->second.file;
    }
    const auto flying = flights_.find(chunk.key);
    if (flying == flights_.end()) break;
    const std::shared_ptr<Flight> flight = flying->second;
    landed_.wait(lock, [&] { return flight->ended || token.cancelled(); });
    if (flight->ended && !flight->cancelled) return flight->outcome;
    if (token.cancelled())
      return std::shared_ptr<ChunkFile>();  // reading directly then fails at once as cancelled
  }
  const auto flight = std::make_shared<Flight>();
  flights_[chunk.key] = flight;
  lock.unlock();
  Outcome outcome = Bring(chunk, fetch, token);
  lock.lock();
  flight->outcome = outcome;
  flight->cancelled = token.cancelled();
  flight->ended = true;
  flights_.erase(chunk.key);
  if (outcome && *outcome) Remember(chunk, *outcome);
  landed_.notify_all();
  return outcome;
}

DiskCache::Outcome DiskCache::Bring(const Chunk& chunk, const Fetch& fetch,
                                    const Cancellation::Token& token) {
  if (auto cached = OpenCached(chunk)) return cached;
  if (!writing_) return std::shared_ptr<ChunkFile>();
  const auto folder = root_ + "/" + chunk.name.substr(0, 2);
  if (auto made = MakeTrustedDirectory(folder, kBelowMode); !made) {
    StopWriting(made.error());
    return std::shared_ptr<ChunkFile>();
  }
  const auto lock = WaitForLock(LockPlace(chunk.name), chunk.path + CacheSpace::kPartSuffix, token);
  if (!lock) return std::shared_ptr<ChunkFile>();
  if (auto cached = OpenCached(chunk)) return cached;  // another process fetched it meanwhile
  return FetchToDisk(chunk, fetch, token);
}

DiskCache::Outcome DiskCache::FetchToDisk(const Chunk& chunk, const Fetch& fetch,
                                          const Cancellation::Token& token) {
  const std::string part = chunk.path + CacheSpace::kPartSuffix;
  auto fd = CreatePart(part, ChunkFileBytes(chunk.bytes), token);
  if (!fd) {
    if (fd.error().code != ErrorCode::kUnavailable) StopWriting(fd.error());
    return std::shared_ptr<ChunkFile>();
  }
  ChunkTail tail;
  uint64_t written = 0;
  Result<void> disk;
  const auto fetched = fetch(chunk.offset, chunk.bytes, [&](std::span<const uint8_t> data) {
    disk = Write(fd->get(), data, written);
    written += data.size();
    tail.Add(data);
    return disk.ok();
  });
  if (fetched && disk) {
    const std::string end = tail.Finish(chunk.key);
    disk = Write(fd->get(), {reinterpret_cast<const uint8_t*>(end.data()), end.size()}, written);
    if (disk && rename(part.c_str(), chunk.path.c_str()) != 0) {
      disk = ErrnoError("cannot rename '" + part + "'", errno);
    }
    if (disk) return OpenCached(chunk);
  }
  unlink(part.c_str());
  if (!disk) StopWriting(disk.error());
  if (!fetched) return fetched.error();
  return std::shared_ptr<ChunkFile>();
}

std::shared_ptr<ChunkFile> DiskCache::OpenCached(const Chunk& chunk) {
  auto file = ChunkFile::Open(chunk.path, chunk.key, chunk.bytes);
  if (file) return *file;
  if (file.error().code == ErrorCode::kCorrupt) unlink(chunk.path.c_str());
  return nullptr;
}

std::optional<CacheLock> DiskCache::WaitForLock(uint64_t place, const std::string& progress_path,
                                                const Cancellation::Token& token) {
  const double patience_s = progress_path.empty() ? kUsagePatienceS : options_.patience_s;
  int64_t last_progress = 0, last_progress_ns = MonotonicNs();
  for (;;) {
    auto lock = CacheLock::Try(lock_path_, place);
    if (!lock) {
      StopWriting(lock.error());
      return std::nullopt;
    }
    if (*lock) return std::move(*lock);
    // The kernel frees the locks of dead processes, so the holder may be stopped or its server silent.
    const int64_t now = MonotonicNs(), progress = ProgressOf(progress_path);
    if (progress != last_progress) last_progress_ns = now;
    last_progress = progress;
    if (static_cast<double>(now - last_progress_ns) > patience_s * static_cast<double>(kNsPerSecond))
      return std::nullopt;
    if (!token.Sleep(kPollEvery)) return std::nullopt;
  }
}

Result<UniqueFd> DiskCache::CreatePart(const std::string& path, uint64_t bytes,
                                       const Cancellation::Token& token) {
  std::lock_guard one_thread(space_mutex_);
  const auto lock = WaitForLock(CacheSpace::kUsagePlace, "", token);
  if (!lock) return Error{ErrorCode::kUnavailable, "the count of the cache's size is locked", ""};
  return space_.Create(path, bytes);
}

Result<void> DiskCache::Write(int fd, std::span<const uint8_t> data, uint64_t offset) const {
  while (!data.empty()) {
    const ssize_t n = options_.write
                          ? options_.write(fd, data.data(), data.size(), static_cast<off_t>(offset))
                          : pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ErrnoError("cannot write in '" + root_ + "'", n == 0 ? ENOSPC : errno);
    data = data.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

void DiskCache::Remember(const Chunk& chunk, std::shared_ptr<ChunkFile> file) {
  uses_.push_front(chunk.key);
  open_[chunk.key] = {std::move(file), uses_.begin()};
  if (open_.size() <= kMaxOpenChunks) return;
  open_.erase(uses_.back());
  uses_.pop_back();
}

void DiskCache::Forget(const Chunk& chunk) {
  unlink(chunk.path.c_str());
  std::lock_guard lock(mutex_);
  const auto found = open_.find(chunk.key);
  if (found == open_.end()) return;
  uses_.erase(found->second.use);
  open_.erase(found);
}

void DiskCache::StopWriting(const Error& error) {
  writing_ = false;
  log_.Once("cache", Message::Severity::kWarning,
            "the disk cache in '" + options_.directory + "' stores nothing more: " + error.text +
                ". Remote data is read without it" +
                (error.hint.empty() ? "; cache_directory can name another place" : "; " + error.hint));
}

}  // namespace fullbore::loader::remote
