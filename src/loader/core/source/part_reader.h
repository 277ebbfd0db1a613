// Reads small parts of a file from front to back, as an indexer does, through a window that grows while it
// serves several parts and shrinks while each part is far from the previous one.
#pragma once

#include <span>
#include <vector>

#include "loader/core/store.h"

namespace fullbore::loader {

class PartReader {
 public:
  PartReader(Store& store, const StoredFile& file);

  // Valid until the next call. kCorrupt if the file ends before that.
  Result<std::span<const uint8_t>> At(uint64_t offset, size_t bytes);
  uint64_t file_bytes() const { return file_.bytes; }
  const std::string& path() const { return file_.path; }

 private:
  Store& store_;
  const StoredFile& file_;
  const size_t least_;  // of a window
  size_t wanted_;
  size_t parts_ = 0;  // that the window has served
  uint64_t begin_ = 0;
  std::vector<uint8_t> window_;
};

}  // namespace fullbore::loader
