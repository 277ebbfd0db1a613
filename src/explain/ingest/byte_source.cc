#include "explain/ingest/byte_source.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/fd.h"

namespace fullbore::ingest {
namespace {

constexpr size_t kChunkBytes = size_t{256} * 1024;

constexpr std::string_view kBzip2Block = "1AY&SY";  // behind "BZh9"
constexpr int kGzipWindow = 15 + 16;                // zlib: the largest window, gzip header only

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

// What all decompressors share: compressed bytes read ahead from the source below.
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
    if (expansion_.Allows(bytes, below_->file_position())) return bytes;
    return Broken(Expansion::kTooMuch + ",");
  }

  std::unique_ptr<ByteSource> below_;
  Expansion expansion_;
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

// xz and bzip2 by libarchive's filters: one layer of the one kind that the first bytes name, nothing guessed.
class FilterSource : public Decompressor {
 public:
  FilterSource(std::unique_ptr<ByteSource> below, std::string_view already_read, int filter, std::string name)
      : Decompressor(std::move(below), already_read), archive_(archive_read_new()), name_(std::move(name)) {
    archive_read_support_format_raw(archive_);
    archive_read_support_format_empty(archive_);
    if (archive_read_append_filter(archive_, filter) == ARCHIVE_OK) return;
    // It would start a program to unpack it.
    failed_ = Error{ErrorCode::kUnsupported, "the libarchive of this computer cannot unpack " + name_,
                    "unpack it first: " + name_ + " -dk FILE"};
  }
  ~FilterSource() override { archive_read_free(archive_); }

  void Refuse(Error error) { failed_ = std::move(error); }

  Result<size_t> Read(char* out, size_t size) override {
    if (block_.empty()) {
      auto filled = FillBlock();
      if (!filled) return filled.error();
      if (!*filled) return size_t{0};
    }
    const size_t taken = block_.copy(out, size);
    block_.remove_prefix(taken);
    return Unpacked(taken);
  }

 private:
  Result<bool> FillBlock() {
    if (failed_) return *failed_;
    if (!opened_) {
      opened_ = true;
      archive_entry* entry = nullptr;
      int status = archive_read_open(archive_, this, nullptr, Supply, nullptr);
      if (status == ARCHIVE_OK) status = archive_read_next_header(archive_, &entry);
      if (status == ARCHIVE_EOF) return false;
      if (status != ARCHIVE_OK) return Damaged();
    }
    const void* bytes = nullptr;
    size_t size = 0;
    int64_t offset = 0;
    while (size == 0) {
      const int status = archive_read_data_block(archive_, &bytes, &size, &offset);
      if (status == ARCHIVE_EOF) return false;
      if (status != ARCHIVE_OK) return Damaged();
    }
    block_ = {static_cast<const char*>(bytes), size};
    return true;
  }

  static la_ssize_t Supply(archive* reader, void* self, const void** bytes) {
    auto* source = static_cast<FilterSource*>(self);
    auto more = source->FillIfEmpty();
    if (!more) {
      source->failed_ = more.error();
      archive_set_error(reader, EIO, "%s", more.error().text.c_str());
      return ARCHIVE_FATAL;
    }
    *bytes = source->input_.data() + source->used_;
    const size_t given = source->filled_ - source->used_;
    source->used_ = source->filled_;
    source->ended_ = given == 0;
    return static_cast<la_ssize_t>(given);
  }

  Error Damaged() {
    if (!failed_) failed_ = Broken("the " + name_ + " stream " + (ended_ ? "ends too early" : "is damaged"));
    return *failed_;
  }

  archive* const archive_;
  const std::string name_;
  std::optional<Error> failed_;
  std::string_view block_;  // unpacked, but not asked for yet; libarchive's memory
  bool opened_ = false;
  bool ended_ = false;
};

// The bytes that unpacking the first block of an .xz file takes: the dictionary that its header asks for, up to 4 GiB,
// which liblzma would grant. 0 where the header says nothing.
uint64_t XzDictionaryBytes(std::string_view head) {
  constexpr size_t kStreamHeader = 12;
  constexpr uint64_t kLzma2 = 0x21;
  size_t at = kStreamHeader + 1;  // the size of the block's header
  const auto byte = [&]() -> uint64_t { return at < head.size() ? static_cast<uint8_t>(head[at++]) : 0; };
  const auto number = [&] {
    uint64_t value = 0;
    for (int shift = 0; shift < 63; shift += 7) {
      const uint64_t next = byte();
      value |= (next & 0x7f) << shift;
      if (next < 0x80) break;
    }
    return value;
  };
  const uint64_t flags = byte();
  if ((flags & 0x40) != 0) number();
  if ((flags & 0x80) != 0) number();
  for (uint64_t filters = (flags & 3) + 1; filters > 0 && at < head.size(); --filters) {
    const uint64_t id = number();
    const uint64_t properties = number();
    if (id == kLzma2) {
      const uint64_t bits = byte();
      return bits > 40 ? 0 : (2 | (bits & 1)) << (bits / 2 + 11);
    }
    at += std::min<uint64_t>(properties, head.size());
  }
  return 0;
}

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

std::unique_ptr<ByteSource> Xz(std::unique_ptr<ByteSource> below, std::string_view magic) {
  constexpr uint64_t kMaxDictionary = 256 << 20;  // "xz -9" takes 64 MB
  auto source = std::make_unique<FilterSource>(std::move(below), magic, ARCHIVE_FILTER_XZ, "xz");
  if (XzDictionaryBytes(magic) > kMaxDictionary) {
    source->Refuse({ErrorCode::kUnsupported,
                    "the xz stream asks for more than 256 MB of memory to be unpacked",
                    "unpack it first: xz -dk FILE"});
  }
  return source;
}

}  // namespace

const std::string Expansion::kTooMuch =
    "the file unpacks to more than " + std::to_string(kMostTimes) + " times its size, as no trace does";

bool Expansion::Allows(size_t bytes, int64_t packed_position) {
  unpacked_ += static_cast<int64_t>(bytes);
  return unpacked_ <= kAlways || unpacked_ / kMostTimes <= packed_position;
}

Result<std::string> HeadOf(ByteSource& source, size_t bytes) {
  std::string head(bytes, '\0');
  size_t size = 0;
  while (size < head.size()) {
    auto got = source.Read(head.data() + size, head.size() - size);
    if (!got) return got.error();
    if (*got == 0) break;
    size += *got;
  }
  head.resize(size);
  return head;
}

std::unique_ptr<ByteSource> Rejoined(std::string head, std::unique_ptr<ByteSource> rest) {
  return std::make_unique<PrefixedSource>(std::move(head), std::move(rest));
}

Result<std::unique_ptr<ByteSource>> Unpack(std::unique_ptr<ByteSource> packed) {
  constexpr size_t kMagicBytes = 48;  // to the dictionary's size in an .xz file
  auto head = HeadOf(*packed, kMagicBytes);
  if (!head) return head.error();
  const std::string& magic = *head;
  if (magic.starts_with("\x1f\x8b")) return Decompressed<GzipSource>(std::move(packed), magic);
  if (magic.starts_with("\x28\xb5\x2f\xfd")) return Decompressed<ZstdSource>(std::move(packed), magic);
  if (magic.starts_with(std::string_view("\xfd"
                                         "7zXZ\0",
                                         6)))
    return Xz(std::move(packed), magic);
  if (magic.starts_with("BZh") && magic.size() > 9 && magic.compare(4, 6, kBzip2Block) == 0) {
    return std::unique_ptr<ByteSource>(
        std::make_unique<FilterSource>(std::move(packed), magic, ARCHIVE_FILTER_BZIP2, "bzip2"));
  }
  return Rejoined(std::move(*head), std::move(packed));
}

Result<std::unique_ptr<ByteSource>> OpenBytes(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError("cannot open '" + path + "'", errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoError("cannot look at '" + path + "'", errno);
  if (S_ISDIR(info.st_mode)) return Error{ErrorCode::kInvalidArgument, "'" + path + "' is a directory", ""};
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return Unpack(std::make_unique<FileSource>(path, std::move(fd), info.st_size));
}

std::unique_ptr<ByteSource> BytesInMemory(std::string_view bytes) {
  auto source = Unpack(std::make_unique<MemorySource>(bytes));
  FB_CHECK(source.ok());
  return std::move(*source);
}

}  // namespace fullbore::ingest
