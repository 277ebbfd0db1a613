// The files inside a tar stream, one after the other, without unpacking: libarchive's reader of tar, and of nothing else,
// over our stream. Memory is bounded, whatever the archive claims. The names are the archive's own: no file of that name
// is ever made, and what is printed of them goes through Printable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "explain/ingest/byte_source.h"

struct archive;

namespace fullbore::ingest {

class TarReader {
 public:
  explicit TarReader(std::unique_ptr<ByteSource> source);
  ~TarReader();
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  // Moves to the next regular file; false at the end. What was left of the one before is skipped.
  Result<bool> Next();

  const std::string& name() const { return name_; }
  std::unique_ptr<ByteSource> Contents();  // of the current file, once; dies with the reader or with Next()

 private:
  class Member;

  Error Failure() const;
  // More of the current file's bytes into `block_`; false at its end.
  Result<bool> FillBlock();
  static ssize_t Supply(archive* reader, void* self, const void** bytes);

  const std::unique_ptr<ByteSource> source_;
  archive* const archive_;
  std::string input_;            // what libarchive is looking at
  std::optional<Error> failed_;  // of the source; libarchive knows only that there was one
  std::string name_;
  std::string_view block_;  // of the current file, read but not asked for yet; libarchive's memory
  int64_t position_ = 0;    // of the end of `block_`
};

}  // namespace fullbore::ingest
