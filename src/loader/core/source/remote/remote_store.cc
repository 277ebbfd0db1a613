#include "loader/core/source/remote/remote_store.h"

#include <algorithm>

#include "base/secrets.h"
#include "loader/core/source/remote/disk_cache.h"
#include "loader/core/source/remote/read_ahead.h"
#include "loader/core/source/remote/transfers.h"
#include "loader/core/source/remote/url.h"

namespace fullbore::loader {
namespace {

using namespace remote;

class RemoteStore : public Store {
 public:
  explicit RemoteStore(const SourceOptions& options)
      : client_(options.timeout_s, log_),
        requests_(options.s3_endpoint, S3Surroundings::Real()),
        transfers_(client_, requests_, log_, RetryPolicy{.retries = options.retries}) {
    OpenCache(options);
  }

  Result<std::vector<StoredFile>> List(const std::string& prefix) override {
    const Cancellation::Token token(cancellation_);
    if (SchemeOf(prefix) == Scheme::kS3) return transfers_.List(prefix, token);
    return Error{ErrorCode::kUnsupported, "HTTP has no listing: cannot list '" + MaskUrl(prefix) + "'",
                 "list the files, as in https://host/train-{000..012}.tar, or use s3://"};
  }

  Result<StoredFile> Stat(const std::string& path) override {
    return transfers_.Stat(path, Cancellation::Token(cancellation_));
  }

  Result<void> Read(const StoredFile& file, uint64_t offset, std::span<uint8_t> out) override {
    if (offset > file.bytes || out.size() > file.bytes - offset) {
      return Error{ErrorCode::kCorrupt,
                   "'" + MaskUrl(file.path) + "' ends at byte " + std::to_string(file.bytes) + ": " +
                       std::to_string(out.size()) + " bytes were requested from byte " +
                       std::to_string(offset),
                   ""};
    }
    const Cancellation::Token token(cancellation_);
    while (!out.empty()) {
      const uint64_t part =
          cache_ ? std::min<uint64_t>(out.size(), cache_->ChunkEnd(offset) - offset) : out.size();
      if (auto read = ReadPart(file, offset, out.first(part), token); !read) return read;
      out = out.subspan(part);
      offset += part;
    }
    return {};
  }

  void Cancel() override {
    cancellation_.Cancel();
    client_.Wake();
    if (cache_) cache_->Wake();
    read_ahead_.Wake();
  }

  std::vector<Message> TakeMessages() override { return log_.Take(); }

 private:
  void OpenCache(const SourceOptions& options) {
    const std::string directory =
        options.cache_directory.empty() ? DefaultCacheDirectory() : options.cache_directory;
    if (options.cache_bytes == 0) return;
    if (directory.empty()) {
      log_.Once(
          "cache", Message::Severity::kWarning,
          "remote data is read without a disk cache: neither cache_directory nor XDG_CACHE_HOME nor HOME "
          "says where to put one");
      return;
    }
    cache_.emplace(DiskCacheOptions{.directory = directory,
                                    .limit_bytes = options.cache_bytes,
                                    .patience_s = options.timeout_s,
                                    .write = {}},
                   log_);
  }

  // Reads a part of one chunk of the cache.
  Result<void> ReadPart(const StoredFile& file, uint64_t offset, std::span<uint8_t> out,
                        const Cancellation::Token& token) {
    if (cache_ && file.version.empty()) {
      log_.Once(
          "version", Message::Severity::kWarning,
          MaskUrl(file.path) +
              ": the server gives neither an ETag nor a date, so that nothing would tell when it changes: "
              "it is not cached");
    } else if (cache_) {
      const auto fetch = [&](uint64_t from, uint64_t bytes, const DiskCache::Sink& sink) {
        return transfers_.Fetch(file, from, bytes, sink, token);
      };
      const auto read = cache_->Read(IdentityOf(file.path), file, offset, out, fetch, token);
      if (!read) return read.error();
      if (*read) return {};
    }
    const auto fetch = [&](uint64_t from, std::span<uint8_t> target) {
      return FetchInto(file, from, target, token);
    };
    return read_ahead_.Read(file, offset, out, fetch, token);
  }

  Result<void> FetchInto(const StoredFile& file, uint64_t offset, std::span<uint8_t> out,
                         const Cancellation::Token& token) {
    uint8_t* next = out.data();
    return transfers_.Fetch(
        file, offset, out.size(),
        [&](std::span<const uint8_t> bytes) {
          next = std::copy(bytes.begin(), bytes.end(), next);
          return true;
        },
        token);
  }

  std::string IdentityOf(const std::string& url) const {
    return SchemeOf(url) == Scheme::kS3 ? requests_.S3Endpoint() + "\n" + url : url;
  }

  MessageLog log_;
  Cancellation cancellation_;
  HttpClient client_;
  Requests requests_;
  Transfers transfers_;
  std::optional<DiskCache> cache_;  // empty: switched off
  ReadAhead read_ahead_;            // for what the cache does not store
};

}  // namespace

Result<std::shared_ptr<Store>> OpenRemoteStore(const std::string& url, const SourceOptions& options) {
  if (SchemeOf(url) == Scheme::kNone) {
    return Error{ErrorCode::kInvalidArgument,
                 "'" + MaskUrl(url) + "' is not an http://, https:// or s3:// URL", ""};
  }
  if (!(options.timeout_s > 0) || options.retries < 0) {
    return Error{ErrorCode::kInvalidArgument, "timeout_s must be above 0, and retries not negative", ""};
  }
  if (SchemeOf(url) == Scheme::kS3) {
    if (const auto location = ParseS3Url(url); !location) return location.error();
    const auto access = FindS3Access(options.s3_endpoint, S3Surroundings::Real());
    if (!access) return access.error();
  }
  return std::shared_ptr<Store>(std::make_shared<RemoteStore>(options));
}

}  // namespace fullbore::loader
