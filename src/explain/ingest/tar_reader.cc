#include "explain/ingest/tar_reader.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cstring>

namespace fullbore::ingest {
namespace {

constexpr size_t kInputBytes = 64 * 1024;

// Headers hold bytes; pax records hold UTF-8. libarchive returns what there is, or null if it cannot convert
// it.
std::string NameOf(archive_entry* entry) {
  for (const char* name : {archive_entry_pathname(entry), archive_entry_pathname_utf8(entry)}) {
    if (name != nullptr) return name;
  }
  return "(a name that cannot be read)";
}

}  // namespace

class TarReader::Member : public ByteSource {
 public:
  explicit Member(TarReader* tar) : tar_(tar) {}
  Result<size_t> Read(char* out, size_t size) override {
    if (tar_->block_.empty()) {
      auto filled = tar_->FillBlock();
      if (!filled) return filled.error();
    }
    const size_t taken = tar_->block_.copy(out, size);
    tar_->block_.remove_prefix(taken);
    return taken;
  }
  int64_t file_position() const override { return tar_->source_->file_position(); }
  int64_t file_size() const override { return tar_->source_->file_size(); }

 private:
  TarReader* tar_;
};

TarReader::TarReader(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), archive_(archive_read_new()), input_(kInputBytes, '\0') {
  FB_CHECK(archive_ != nullptr);
  archive_read_support_format_tar(archive_);
  // It may reject the file's first bytes as not tar: the first Next() reports that.
  archive_read_open(archive_, this, nullptr, Supply, nullptr);
}

TarReader::~TarReader() { archive_read_free(archive_); }

std::unique_ptr<ByteSource> TarReader::Contents() { return std::make_unique<Member>(this); }

ssize_t TarReader::Supply(archive* reader, void* self, const void** bytes) {
  auto* tar = static_cast<TarReader*>(self);
  auto got = tar->source_->Read(tar->input_.data(), tar->input_.size());
  if (!got) {
    tar->failed_ = got.error();
    archive_set_error(reader, EIO, "%s", got.error().text.c_str());
    return ARCHIVE_FATAL;
  }
  *bytes = tar->input_.data();
  return static_cast<ssize_t>(*got);
}

Error TarReader::Failure() const {
  if (failed_) return *failed_;
  const char* why = archive_error_string(archive_);
  const std::string where = name_.empty() ? "" : " at or after '" + name_ + "'";
  return {ErrorCode::kCorrupt, "the tar file is damaged" + where + (why ? std::string(": ") + why : ""), ""};
}

Result<bool> TarReader::Next() {
  block_ = {};
  position_ = 0;
  for (;;) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(archive_, &entry);
    if (status == ARCHIVE_EOF) return false;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return Failure();
    name_ = NameOf(entry);
    if (archive_entry_filetype(entry) == AE_IFREG && archive_entry_hardlink(entry) == nullptr) return true;
  }
}

Result<bool> TarReader::FillBlock() {
  const void* bytes = nullptr;
  size_t size = 0;
  int64_t offset = 0;
  while (size == 0) {
    const int status = archive_read_data_block(archive_, &bytes, &size, &offset);
    if (status == ARCHIVE_EOF) return false;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return Failure();
    // With holes, a few bytes can claim to be exabytes; traces have none.
    if (size > 0 && offset != position_) {
      return Error{ErrorCode::kUnsupported, "'" + name_ + "' has holes in the tar file",
                   "pack it without --sparse"};
    }
  }
  block_ = {static_cast<const char*>(bytes), size};
  position_ += static_cast<int64_t>(size);
  return true;
}

}  // namespace fullbore::ingest
