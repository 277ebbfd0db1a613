#include "explain/ingest/archive_reader.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cstring>

namespace fullbore::ingest {
namespace {

constexpr size_t kInputBytes = size_t{64} * 1024;

// Headers hold bytes; pax records hold UTF-8. libarchive returns what there is, or null if it cannot convert
// it.
std::string NameOf(archive_entry* entry) {
  for (const char* name : {archive_entry_pathname(entry), archive_entry_pathname_utf8(entry)}) {
    if (name != nullptr) return name;
  }
  return "(a name that cannot be read)";
}

// Zip knows a dozen ways to pack. What zip programs do unless told otherwise takes 32 KB of memory to unpack; others
// (LZMA, PPMd) take as many gigabytes as the file asks for. Only the format's name tells which it is. Nothing for
// what may be read.
std::optional<std::string> UnboundedMethod(archive* opened) {
  if ((archive_format(opened) & ARCHIVE_FORMAT_BASE_MASK) != ARCHIVE_FORMAT_ZIP) return std::nullopt;
  const char* name = archive_format_name(opened);
  std::string method = name == nullptr ? "unknown" : name;
  if (method.ends_with("(uncompressed)") || method.ends_with("(deflation)")) return std::nullopt;
  return method;
}

}  // namespace

class ArchiveReader::Member : public ByteSource {
 public:
  explicit Member(ArchiveReader* reader) : reader_(reader) {}
  Result<size_t> Read(char* out, size_t size) override {
    if (reader_->block_.empty()) {
      auto filled = reader_->FillBlock();
      if (!filled) return filled.error();
    }
    const size_t taken = reader_->block_.copy(out, size);
    reader_->block_.remove_prefix(taken);
    return taken;
  }
  int64_t file_position() const override { return reader_->source_->file_position(); }
  int64_t file_size() const override { return reader_->source_->file_size(); }

 private:
  ArchiveReader* reader_;
};

ArchiveReader::ArchiveReader(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), archive_(archive_read_new()), input_(kInputBytes, '\0') {
  FB_CHECK(archive_ != nullptr);
  archive_read_support_format_tar(archive_);
  archive_read_support_format_zip_streamable(archive_);
  // It may reject the file's first bytes as neither: the first Next() reports that.
  archive_read_open(archive_, this, nullptr, Supply, nullptr);
}

ArchiveReader::~ArchiveReader() { archive_read_free(archive_); }

std::unique_ptr<ByteSource> ArchiveReader::Contents() { return std::make_unique<Member>(this); }

ssize_t ArchiveReader::Supply(archive* opened, void* self, const void** bytes) {
  auto* reader = static_cast<ArchiveReader*>(self);
  auto got = reader->source_->Read(reader->input_.data(), reader->input_.size());
  if (!got) {
    reader->failed_ = got.error();
    archive_set_error(opened, EIO, "%s", got.error().text.c_str());
    return ARCHIVE_FATAL;
  }
  *bytes = reader->input_.data();
  return static_cast<ssize_t>(*got);
}

Error ArchiveReader::Failure() const {
  if (failed_) return *failed_;
  const char* why = archive_error_string(archive_);
  const std::string where = name_.empty() ? "" : " at or after '" + name_ + "'";
  return {ErrorCode::kCorrupt, "the archive is damaged" + where + (why ? std::string(": ") + why : ""), ""};
}

Result<bool> ArchiveReader::Next() {
  block_ = {};
  position_ = 0;
  if (failed_) return *failed_;
  for (;;) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(archive_, &entry);
    if (status == ARCHIVE_EOF) return false;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return Failure();
    name_ = NameOf(entry);
    if (const auto method = UnboundedMethod(archive_)) {
      failed_ =
          Error{ErrorCode::kUnsupported, "'" + name_ + "' is packed in a way that is not read: " + *method,
                "pack it as zip does unless told otherwise (deflate)"};
      return *failed_;
    }
    if (archive_entry_filetype(entry) == AE_IFREG && archive_entry_hardlink(entry) == nullptr) return true;
  }
}

Result<bool> ArchiveReader::FillBlock() {
  const void* bytes = nullptr;
  size_t size = 0;
  int64_t offset = 0;
  while (size == 0) {
    const int status = archive_read_data_block(archive_, &bytes, &size, &offset);
    if (status == ARCHIVE_EOF) return false;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return Failure();
    // With holes, a few bytes can claim to be exabytes; traces have none.
    if (size > 0 && offset != position_) {
      return Error{ErrorCode::kUnsupported, "'" + name_ + "' has holes in the archive",
                   "pack it without --sparse"};
    }
  }
  if (!expansion_.Allows(size, source_->file_position()))
    return Error{ErrorCode::kCorrupt, Expansion::kTooMuch + " in '" + name_ + "'", ""};
  block_ = {static_cast<const char*>(bytes), size};
  position_ += static_cast<int64_t>(size);
  return true;
}

}  // namespace fullbore::ingest
