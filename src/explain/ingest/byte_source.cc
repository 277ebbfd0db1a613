#include "explain/ingest/byte_source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/fd.h"

namespace fullbore::ingest {
namespace {

constexpr size_t kChunkBytes = 256 * 1024;
// Traces compress to a tenth of their size, artificial ones to a fiftieth. A file that expands far more was
// made to keep its reader busy for hours.
constexpr int64_t kMaxExpansion = 500;
constexpr int64_t kAnyExpansion = 64 << 20;  // bytes: this much is read in no time at all

constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, gzip header only

class FileSource : public ByteSource {
 public:
  FileSource(std::string path, UniqueFd fd, int64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  Result<size_t> Read(char* out, size_t size) override {
    for (;;) {
      const ssize_t got = ::read(fd_.get(), out, size);
      if (got >= 0) {
        position_ += got;
        return static_cast<size_t>(got);
      }
      if (errno != EINTR) return ErrnoError("cannot read '" + path_ + "'", errno);
    }
  }
  int64_t file_position() const override { return position_; }
  int64_t file_size() const override { return size_; }

 private:
  std::string path_;
  UniqueFd fd_;
  int64_t size_;
  int64_t position_ = 0;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  Result<size_t> Read(char* out, size_t size) override {
    const size_t n = std::min(size, bytes_.size() - at_);
    std::memcpy(out, bytes_.data() + at_, n);
    at_ += n;
    return n;
  }
  int64_t file_position() const override { return static_cast<int64_t>(at_); }
  int64_t file_size() const override { return static_cast<int64_t>(bytes_.size()); }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

// What both decompressors share: compressed bytes read ahead from the source below.
class Decompressor : public ByteSource {
 public:
  Decompressor(std::unique_ptr<ByteSource> below, std::string_view already_read)
      : below_(std::move(below)), input_(std::max(kChunkBytes, already_read.size())) {
    std::memcpy(input_.data(), already_read.data(), already_read.size());
    filled_ = already_read.size();
  }
  int64_t file_position() const override { return below_->file_position(); }
  int64_t file_size() const override { return below_->file_size(); }

 protected:
  // False at the end of the compressed file.
  Result<bool> FillIfEmpty() {
    if (used_ < filled_) return true;
    auto got = below_->Read(input_.data(), input_.size());
    if (!got) return got.error();
    used_ = 0;
    filled_ = *got;
    return filled_ > 0;
  }
  Error Broken(const std::string& what) const {
    return {ErrorCode::kCorrupt,
            what + " at byte " +
                std::to_string(below_->file_position() - static_cast<int64_t>(filled_ - used_)) +
                " of the compressed file",
            ""};
  }

  Result<size_t> Unpacked(size_t bytes) {
    unpacked_ += static_cast<int64_t>(bytes);
    if (unpacked_ <= kAnyExpansion || unpacked_ / kMaxExpansion <= below_->file_position()) return bytes;
    return Broken("the file unpacks to more than " + std::to_string(kMaxExpansion) +
                  " times its size, as no trace does,");
  }

  std::unique_ptr<ByteSource> below_;
  int64_t unpacked_ = 0;
  std::vector<char> input_;
  size_t used_ = 0;
  size_t filled_ = 0;
};

class GzipSource : public Decompressor {
 public:
  using Decompressor::Decompressor;
  ~GzipSource() override { inflateEnd(&stream_); }

  bool Init() { return inflateInit2(&stream_, kGzipWindow) == Z_OK; }

  Result<size_t> Read(char* out, size_t size) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min(size, kChunkBytes * 16));
    const uInt wanted = stream_.avail_out;
    while (stream_.avail_out == wanted) {
      auto more = FillIfEmpty();
      if (!more) return more.error();
      if (!*more) {
        if (between_members_) return size_t{0};
        return Broken("the gzip stream ends too early");
      }
      stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + used_);
      stream_.avail_in = static_cast<uInt>(filled_ - used_);
      // Some writers concatenate members; what follows the last one (padding) is not data.
      if (between_members_ && *stream_.next_in != 0x1f) return size_t{0};
      between_members_ = false;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      used_ = filled_ - stream_.avail_in;
      if (status == Z_STREAM_END) {
        inflateReset(&stream_);
        between_members_ = true;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        return Broken("the gzip stream is damaged");
      }
    }
    return Unpacked(wanted - stream_.avail_out);
  }

 private:
  z_stream stream_{};
  bool between_members_ = false;
};

class ZstdSource : public Decompressor {
 public:
  using Decompressor::Decompressor;
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

  bool Init() {
    stream_ = ZSTD_createDStream();
    return stream_ != nullptr;
  }

  Result<size_t> Read(char* out, size_t size) override {
    ZSTD_outBuffer to{out, size, 0};
    while (to.pos == 0) {
      auto more = FillIfEmpty();
      if (!more) return more.error();
      if (!*more) {
        if (between_frames_) return size_t{0};
        return Broken("the zstd stream ends too early");
      }
      ZSTD_inBuffer from{input_.data(), filled_, used_};
      const size_t status = ZSTD_decompressStream(stream_, &to, &from);
      used_ = from.pos;
      if (ZSTD_isError(status)) return Broken("the zstd stream is damaged");
      between_frames_ = status == 0;
    }
    return Unpacked(to.pos);
  }

 private:
  ZSTD_DStream* stream_ = nullptr;
  bool between_frames_ = false;
};

// Returns the bytes read for the magic again to whoever reads on.
class PrefixedSource : public ByteSource {
 public:
  PrefixedSource(std::string prefix, std::unique_ptr<ByteSource> rest)
      : prefix_(std::move(prefix)), rest_(std::move(rest)) {}
  Result<size_t> Read(char* out, size_t size) override {
    if (at_ == prefix_.size()) return rest_->Read(out, size);
    const size_t n = std::min(size, prefix_.size() - at_);
    std::memcpy(out, prefix_.data() + at_, n);
    at_ += n;
    return n;
  }
  int64_t file_position() const override { return rest_->file_position(); }
  int64_t file_size() const override { return rest_->file_size(); }

 private:
  std::string prefix_;
  size_t at_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

template <typename Source>
Result<std::unique_ptr<ByteSource>> Decompressed(std::unique_ptr<ByteSource> below, std::string_view magic) {
  auto source = std::make_unique<Source>(std::move(below), magic);
  if (!source->Init()) return Error{ErrorCode::kInternal, "cannot start the decompressor: out of memory", ""};
  return std::unique_ptr<ByteSource>(std::move(source));
}

Result<std::unique_ptr<ByteSource>> DecompressedByMagic(std::unique_ptr<ByteSource> below) {
  std::string magic;
  while (magic.size() < 4) {
    char part[4];
    auto got = below->Read(part, 4 - magic.size());
    if (!got) return got.error();
    if (*got == 0) break;
    magic.append(part, *got);
  }
  if (magic.starts_with("\x1f\x8b")) return Decompressed<GzipSource>(std::move(below), magic);
  if (magic.starts_with("\x28\xb5\x2f\xfd")) return Decompressed<ZstdSource>(std::move(below), magic);
  return std::unique_ptr<ByteSource>(std::make_unique<PrefixedSource>(std::move(magic), std::move(below)));
}

}  // namespace

Result<std::unique_ptr<ByteSource>> OpenBytes(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError("cannot open '" + path + "'", errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoError("cannot look at '" + path + "'", errno);
  if (S_ISDIR(info.st_mode)) return Error{ErrorCode::kInvalidArgument, "'" + path + "' is a directory", ""};
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return DecompressedByMagic(std::make_unique<FileSource>(path, std::move(fd), info.st_size));
}

std::unique_ptr<ByteSource> BytesInMemory(std::string_view bytes) {
  auto source = DecompressedByMagic(std::make_unique<MemorySource>(bytes));
  FB_CHECK(source.ok());
  return std::move(*source);
}

}  // namespace fullbore::ingest
