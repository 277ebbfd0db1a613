// The files inside a tar or zip archive, one after the other, without unpacking to disk: libarchive's readers of
// these two formats, and no other, on our stream. Memory is bounded, and so is how far a file may expand, whatever the
// archive claims. Names are as in the
// archive: no file with such a name is ever created, and they are printed through Printable only.
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

class ArchiveReader {
 public:
  explicit ArchiveReader(std::unique_ptr<ByteSource> source);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  // Moves to the next regular file; false at the end. The rest of the previous one is skipped.
  Result<bool> Next();

  const std::string& name() const { return name_; }
  // Of the current file, once; invalid after Next() or without the reader.
  std::unique_ptr<ByteSource> Contents();

 private:
  class Member;

  Error Failure() const;
  // More of the current file's bytes into `block_`; false at its end.
  Result<bool> FillBlock();
  static ssize_t Supply(archive* opened, void* self, const void** bytes);

  const std::unique_ptr<ByteSource> source_;
  archive* const archive_;
  std::string input_;            // what libarchive is looking at
  std::optional<Error> failed_;  // of the source; libarchive knows only that there was one
  std::string name_;
  std::string_view block_;  // of the current file, read but not asked for yet; libarchive's memory
  int64_t position_ = 0;    // of the end of `block_`
  Expansion expansion_;     // of all files together
};

}  // namespace fullbore::ingest
