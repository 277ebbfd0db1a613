#include "loader/core/source/part_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "loader/core/source/paths.h"

namespace fullbore::loader {

namespace {

constexpr size_t kMinLocal = 4096;
constexpr size_t kMinRemote = 1 << 20;  // a request costs milliseconds, whatever its size
constexpr size_t kMost = 1 << 20;

}  // namespace

PartReader::PartReader(Store& store, const StoredFile& file)
    : store_(store), file_(file), least_(IsRemote(file.path) ? kMinRemote : kMinLocal), wanted_(least_) {}

Result<std::span<const uint8_t>> PartReader::At(uint64_t offset, size_t bytes) {
  if (offset > file_.bytes || bytes > file_.bytes - offset) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("'{}' ends at byte {}, in the middle of what begins at byte {}", file_.path,
                             file_.bytes, offset),
                 "the file was truncated, or its copy is incomplete"};
  }
  if (offset < begin_ || offset + bytes > begin_ + window_.size()) {
    constexpr size_t kManyParts = 4;
    if (parts_ >= kManyParts) wanted_ = std::min(wanted_ * 2, kMost);
    if (parts_ <= 1) wanted_ = std::max(wanted_ / 2, least_);
    const size_t size = std::min<uint64_t>(std::max(wanted_, bytes), file_.bytes - offset);
    window_.resize(size);
    begin_ = offset;
    parts_ = 0;
    if (auto read = store_.Read(file_, offset, window_); !read) {
      window_.clear();
      return read.error();
    }
  }
  ++parts_;
  return std::span<const uint8_t>(window_).subspan(offset - begin_, bytes);
}

}  // namespace fullbore::loader
